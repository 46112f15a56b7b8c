// Log lines: one for each message, complete, and only from the configured level on.
#include "util/log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include <gtest/gtest.h>

#include "util/assert.h"

namespace lintel {
namespace {

class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::info);
    testing::internal::CaptureStderr();
  }
  void TearDown() override { set_log_level(LogLevel::warn); }
};

TEST_F(LogTest, LineCarriesProcessLevelAndText) {
  for (const char* const rank : {"", "7"}) {
    set_log_speaker("node3", rank);
    log_message(LogLevel::warn, "%d of %s", 3, "four");
  }
  const std::string process = "node3:" + std::to_string(getpid());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "lintel[" + process +
                                                        "] warn: 3 of four\n"
                                                        "lintel[" +
                                                        process + " rank 7] warn: 3 of four\n");
}

TEST_F(LogTest, LevelsBelowTheChosenOneAreSilent) {
  log_message(LogLevel::debug, "not shown");
  EXPECT_FALSE(log_enabled(LogLevel::debug));
  EXPECT_TRUE(log_enabled(LogLevel::info));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(LogTest, LongTextIsCutInOneLine) {
  const std::string text(5000, 'x');
  log_message(LogLevel::error, "%s", text.c_str());
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.size(), 1023u);
  EXPECT_EQ(line.substr(line.size() - 5), "x...\n");
}

TEST_F(LogTest, ControlCharactersCannotForgeLines) {
  log_message(LogLevel::error, "%s", "a\nlintel[1] error: b\x1b[0m");
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
}

TEST_F(LogTest, OnceMeansOncePerFlag) {
  std::atomic<bool> first{false}, second{false};
  for (int i = 0; i < 3; ++i) log_once(first, LogLevel::warn, "first");
  log_once(second, LogLevel::warn, "second");
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
}

TEST_F(LogTest, SilentOnceDoesNotUseUpItsFlag) {
  std::atomic<bool> said{false};
  log_once(said, LogLevel::debug, "not shown");
  EXPECT_FALSE(said.load());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(LogTest, ErrnoIsKept) {
  errno = EADDRINUSE;
  log_message(LogLevel::error, "text");
  EXPECT_EQ(errno, EADDRINUSE);
  testing::internal::GetCapturedStderr();
}

// Assertions: what does not hold ends the process where they are built in, and is never evaluated
// elsewhere.

TEST(AssertTest, AConditionThatHoldsPasses) {
  const int frames = 3;
  LINTEL_ASSERT(frames == 3);
}

#ifdef LINTEL_ASSERTIONS

TEST(AssertDeathTest, AFailedAssertionNamesConditionAndPlace) {
  const int frames = 3;
  EXPECT_DEATH(LINTEL_ASSERT(frames < 3), "log_test.cc:[0-9]+: the assertion 'frames < 3' failed");
}

#else

TEST(AssertTest, WithoutAssertionsTheConditionIsNotEvaluated) {
  int evaluations = 0;
  LINTEL_ASSERT(++evaluations < 0);
  EXPECT_EQ(evaluations, 0);
}

#endif

}  // namespace
}  // namespace lintel

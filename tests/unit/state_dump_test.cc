// The state of an interface as a debugger prints it.
#include "core/library/state_dump.h"

#include <string>

#include <gtest/gtest.h>

#include "bare_target_support.h"
#include "util/state_writer.h"

namespace lintel::test {
namespace {

using StateDumpTest = BareTargetTest;

std::string dumped() {
  ::testing::internal::CaptureStderr();
  lintel_dump_state();
  return ::testing::internal::GetCapturedStderr();
}

TEST_F(StateDumpTest, NamesAnOperationThatWaitsForItsTarget) {
  EXPECT_EQ(dumped().find("  operation"), std::string::npos);
  ptl_handle_md_t descriptor;
  std::byte buffer[48]{};
  must(PtlMDBind(ni_,
                 std::array{ptl_md_t{buffer, sizeof buffer, 0, PTL_EQ_NONE, PTL_CT_NONE}}.data(),
                 &descriptor));
  must(PtlGet(descriptor, 0, sizeof buffer, target(), 7, 0x5a, 0, nullptr));
  const std::string text = dumped();
  for (const char* part : {"interface 0, ", " by shm: 1 in flight, 0 queued",
                           ": get, 48 bytes, portal 7, match bits 0x5a, was sent, answer due\n",
                           "  1 operations, 0 transfers\n", "  transport shm\n", " 1 of ",
                           " cells not released; receives by lane "})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(StateWriterTest, LongLinesAreCut) {
  ::testing::internal::CaptureStderr();
  StateWriter out(STDERR_FILENO);
  out.line("%s", std::string(2000, 'x').c_str());
  out.line("%u", 7u);
  const std::string text = ::testing::internal::GetCapturedStderr();
  const size_t end = text.find('\n');
  EXPECT_GT(end, 400u);
  EXPECT_LT(end, 600u);
  EXPECT_EQ(text.substr(end), "\n7\n");
}

}  // namespace
}  // namespace lintel::test

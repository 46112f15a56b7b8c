// What a part of a program writes to standard error, in a process of its own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lintel {

// The standard error of another process that runs `body`, with that PTL_LOG_LEVEL.
inline std::string errors_of(const char* level, const std::function<void()>& body) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    setenv("PTL_LOG_LEVEL", level, 1);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text;
  return text;
}

// What this program writes in a new process, which has not written any line yet that it writes
// once.
inline void expect_errors_of_new_process(const char* level, const std::function<void()>& body,
                                         const testing::Matcher<const std::string&>& errors) {
  const auto run = [&] {
    setenv("PTL_LOG_LEVEL", level, 1);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), errors);
}

}  // namespace lintel

#include "util/address_space.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include <gtest/gtest.h>

namespace lintel::test {
namespace {

constexpr uint32_t wanted = 1u << 20;

// A stream would take memory for the time of the call.
uint64_t bytes_in_use() {
  char text[128] = {};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  return length > 0 ? std::strtoull(text, nullptr, 10) * 4096 : 0;
}

// In a child, whose limit ends with it.
bool fits_where_a_gibibyte_is_left() {
  const rlimit limit{bytes_in_use() + (rlim_t{1} << 30), RLIM_INFINITY};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return false;
  const uint64_t of_small = uint64_t{fitting_capacity(wanted, 64)} * 64;
  const uint64_t of_large = uint64_t{fitting_capacity(wanted, 8192)} * 8192;
  return of_small <= uint64_t{1} << 25 && of_large <= uint64_t{1} << 25 &&
         of_large > uint64_t{1} << 24 && fitting_capacity(1000, 64) == 1000 &&
         fitting_capacity(wanted, uint64_t{1} << 40) == 1;
}

TEST(AddressSpaceTest, PoolsAreCutToWhatTheLimitLeaves) {
  const pid_t child = fork();
  if (child == 0) _exit(fits_where_a_gibibyte_is_left() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(AddressSpaceTest, WithoutALimitNothingIsCut) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  if (limit.rlim_cur == RLIM_INFINITY) {
    EXPECT_EQ(fitting_capacity(wanted, 8192), wanted);
  }
}

}  // namespace
}  // namespace lintel::test

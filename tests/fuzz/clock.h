// Set-up path.
#pragma once

#include <time.h>

#include <cstdint>

namespace lintel::fuzz {

// All processes read the same clock.
[[nodiscard]] inline uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace lintel::fuzz

// A clock that costs a few nanoseconds: the time-stamp counter. Message path: read in timed loops.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace lintel::perf {

/** The counter now. Monotonic on processors with an invariant time-stamp counter. */
inline std::uint64_t ticks_now() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                    std::chrono::nanoseconds(1));
#endif
}

/** Converts ticks to time by comparing the counter with the steady clock over its own lifetime. */
class TickScale {
 public:
  TickScale() : start_ticks_(ticks_now()), start_(std::chrono::steady_clock::now()) {}

  /** Nanoseconds per tick. Spins until 20 ms have passed since construction, for precision. */
  double nanoseconds_per_tick() const {
    for (;;) {
      const std::uint64_t ticks = ticks_now() - start_ticks_;
      const auto elapsed = std::chrono::steady_clock::now() - start_;
      if (elapsed >= std::chrono::milliseconds(20)) {
        return std::chrono::duration<double, std::nano>(elapsed).count() /
               static_cast<double>(ticks);
      }
    }
  }

 private:
  std::uint64_t start_ticks_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace lintel::perf

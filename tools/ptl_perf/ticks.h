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
  TickScale() : start_(read_both()) {}

  /** Nanoseconds per tick. Spins until 20 ms have passed since construction, for precision. */
  double nanoseconds_per_tick() const {
    for (;;) {
      const Reading now = read_both();
      const auto elapsed = now.time - start_.time;
      if (elapsed >= std::chrono::milliseconds(20)) {
        return std::chrono::duration<double, std::nano>(elapsed).count() /
               static_cast<double>(now.ticks - start_.ticks);
      }
    }
  }

 private:
  struct Reading {
    std::uint64_t ticks;
    std::chrono::steady_clock::time_point time;
  };

  // Both clocks at one moment: of several attempts the one in which least time passed between
  // them, since the kernel may run something else in between.
  static Reading read_both() {
    Reading best{};
    std::uint64_t least = UINT64_MAX;
    for (int attempt = 0; attempt < 8; ++attempt) {
      const std::uint64_t before = ticks_now();
      const auto time = std::chrono::steady_clock::now();
      const std::uint64_t after = ticks_now();
      if (after - before < least) {
        least = after - before;
        best = {before + (after - before) / 2, time};
      }
    }
    return best;
  }

  Reading start_;
};

}  // namespace lintel::perf

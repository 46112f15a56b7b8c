// Monotonic time in nanoseconds, and a pause for spin loops.
#pragma once

#include <time.h>

#include <cstdint>

namespace lintel {

// Reads the clock through the vDSO: no system call on the platforms that matter.
inline uint64_t now_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// Keeps the compiler from hoisting loads out of a spin loop. Deliberately no pause instruction: in
// virtual machines and on recent processors it costs as much as a cache line needs to cross cores,
// which doubles the latency of a message.
inline void spin_hint() noexcept { asm volatile("" ::: "memory"); }

}  // namespace lintel

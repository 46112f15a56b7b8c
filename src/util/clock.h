// Monotonic time in nanoseconds, and a pause for spin loops. Message path, but for quick_clock().
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

// Keeps the compiler from hoisting loads out of a spin loop. Deliberately no instruction that waits
// (pause; isb or wfe on Arm): in virtual machines and on recent processors it costs as much as a
// cache line needs to cross cores, which doubles the latency of a message. It helps others where
// many threads exchange in a loop; these loops only load, from the cache of their own core.
inline void spin_hint() noexcept { asm volatile("" ::: "memory"); }

using Clock = uint64_t (*)() noexcept;

// The cheapest reliable clock, to be read once per message or per poll: monotonic nanoseconds, from
// any thread. The counter of the processor (time-stamp counter, generic timer) if its rate is
// constant and the kernel uses it, otherwise now_ns() itself. The first call measures the rate over
// the time since the library was loaded. If that is too short or too long, it measures for a
// fraction of a millisecond. The counter drifts from now_ns() by less than one in a thousand. Only
// readings of the same clock may be compared.
[[nodiscard]] Clock quick_clock() noexcept;

}  // namespace lintel

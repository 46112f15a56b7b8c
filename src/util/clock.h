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

// Keeps the compiler from hoisting loads out of a spin loop. Deliberately no pause instruction: in
// virtual machines and on recent processors it costs as much as a cache line needs to cross cores,
// which doubles the latency of a message.
inline void spin_hint() noexcept { asm volatile("" ::: "memory"); }

using Clock = uint64_t (*)() noexcept;

// The cheapest reliable clock, to be read once per message or per poll: monotonic nanoseconds, from
// any thread. On x86-64 the time-stamp counter, if its rate is constant and the kernel uses it. The
// rate is measured at the first call, which takes up to a fraction of a millisecond: since the
// library was loaded, or anew if that was long ago. It drifts from now_ns() by less than one in a
// thousand. Otherwise now_ns() itself. Only readings of the same clock may be compared.
[[nodiscard]] Clock quick_clock() noexcept;

// The rate of the time-stamp counter is found from two readings of it and of the monotonic clock:
// both clocks at one moment.
struct ClockReading {
  uint64_t ticks;
  uint64_t ns;
};

constexpr unsigned clock_fraction_bits = 32;
// Two readings that are less apart give too rough a rate.
constexpr uint64_t shortest_rate_ns = 200'000;
// Between two that are more apart the machine may have been suspended. Their difference must also
// fit into a product with so many bits behind the point.
constexpr uint64_t longest_rate_ns = 1'000'000'000;
static_assert(longest_rate_ns <= UINT64_MAX >> clock_fraction_bits);

// The reading from which the rate is measured: the one of the time when the library was loaded,
// unless it is too old.
[[nodiscard]] constexpr ClockReading rate_start(const ClockReading& loaded,
                                                const ClockReading& now) noexcept {
  return now.ns - loaded.ns > longest_rate_ns / 2 ? now : loaded;
}

// Nanoseconds of a tick, with `clock_fraction_bits` behind the point. 0: the readings are useless.
[[nodiscard]] constexpr uint64_t clock_rate(const ClockReading& start,
                                            const ClockReading& end) noexcept {
  if (end.ticks <= start.ticks || end.ns <= start.ns || end.ns - start.ns > longest_rate_ns)
    return 0;
  return ((end.ns - start.ns) << clock_fraction_bits) / (end.ticks - start.ticks);
}

}  // namespace lintel

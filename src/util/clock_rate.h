// Rate of the time-stamp counter, from two readings of it and of the monotonic clock. Set-up path.
#pragma once

#include <cstdint>

namespace lintel {

// Both clocks at one moment.
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

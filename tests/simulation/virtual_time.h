// The clock of a simulation. The simulation advances it, never while code under test runs.
#pragma once

#include <cstdint>

namespace lintel::simulation {

inline constexpr uint64_t microsecond = 1'000;
inline constexpr uint64_t millisecond = 1'000'000;
inline constexpr uint64_t second = 1'000'000'000;
// When a simulation begins: later than any age that the code under test computes with.
inline constexpr uint64_t start_ns = 1'000 * second;

inline uint64_t virtual_now_ns = start_ns;

// For ReliableSettings::clock.
inline uint64_t virtual_clock() noexcept { return virtual_now_ns; }

// While an interface closes, it looks at the clock until it has sent everything or its time is
// over. For as long as one of these exists, each look finds the clock of the core further ahead.
class ClosingTime {
 public:
  ClosingTime() noexcept { closes = true; }
  ClosingTime(const ClosingTime&) = delete;
  ClosingTime& operator=(const ClosingTime&) = delete;
  ~ClosingTime() { closes = false; }

  static inline bool closes = false;
};

}  // namespace lintel::simulation

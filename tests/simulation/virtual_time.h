// The clock of a simulation. Only the simulation advances it, never while code under test runs.
#pragma once

#include <cstdint>

namespace lintel::simulation {

inline constexpr uint64_t microsecond = 1'000;
inline constexpr uint64_t millisecond = 1'000'000;
inline constexpr uint64_t second = 1'000'000'000;
// The time at which a simulation begins: later than any age that the code under test subtracts.
inline constexpr uint64_t start_ns = 1'000 * second;

inline uint64_t virtual_now_ns = start_ns;

// As ReliableSettings::clock.
inline uint64_t virtual_clock() noexcept { return virtual_now_ns; }

// When an interface closes, it reads the clock until everything has been sent or its time is over.
// While an object of this class exists, each reading of the core's clock advances it.
class ClosingTime {
 public:
  ClosingTime() noexcept { closes = true; }
  ClosingTime(const ClosingTime&) = delete;
  ClosingTime& operator=(const ClosingTime&) = delete;
  ~ClosingTime() { closes = false; }

  static inline bool closes = false;
};

}  // namespace lintel::simulation

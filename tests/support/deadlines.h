// How long tests wait. Everything waits on a condition; these bounds only turn a hang into a
// failure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace lintel::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int slowdown = 5;
#else
inline constexpr int slowdown = 1;
#endif

// LINTEL_TEST_SLOWDOWN (1 to 100): the factor by which an emulated machine is slower than a real
// one.
inline int machine_slowdown() {
  const char* factor = std::getenv("LINTEL_TEST_SLOWDOWN");
  return factor != nullptr ? std::clamp(std::atoi(factor), 1, 100) : 1;
}

using Milliseconds = std::chrono::milliseconds;

// A whole test, from the start of its ranks to their end.
inline const Milliseconds test_deadline{20000 * slowdown * machine_slowdown()};

// Whether to run the long form of tests that have one (LINTEL_TEST_LONG=1).
inline bool long_tests() {
  const char* wish = std::getenv("LINTEL_TEST_LONG");
  return wish != nullptr && *wish != '\0';
}

// For one event, counter value, barrier or flag inside a rank. Shorter than test_deadline, so that
// a rank whose wait fails can report what it waited for.
inline Milliseconds wait_deadline{12000 * slowdown *
                                  machine_slowdown()};  // longer in ranks that may run longer

// The longest duration of a stress of several threads, after it has done its minimum. On a machine
// that runs other programs, a switch between threads may take a whole time slice.
inline constexpr Milliseconds stress_time{3000};

// How long a test watches that something does not happen, after everything that could cause it has
// been acknowledged.
inline constexpr Milliseconds quiet_time{20};

}  // namespace lintel::test

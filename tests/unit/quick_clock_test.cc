// The clock that the library reads once per message.

#include <gtest/gtest.h>

#include "util/clock.h"
#include "util/clock_rate.h"

namespace lintel {
namespace {

TEST(QuickClock, IsTheSameEveryTime) { EXPECT_EQ(quick_clock(), quick_clock()); }

TEST(QuickClock, NeverGoesBack) {
  const Clock clock = quick_clock();
  uint64_t last = clock();
  for (int i = 0; i < 1'000'000; ++i) {
    const uint64_t now = clock();
    ASSERT_GE(now, last);
    last = now;
  }
}

// An interface may be opened long after the library was loaded, also after a suspension.
TEST(QuickClock, AnOldReadingIsNotUsed) {
  constexpr ClockReading loaded{1000, 5000};
  constexpr ClockReading soon{1000 + 900'000, 5000 + 300'000};
  EXPECT_EQ(rate_start(loaded, soon).ns, loaded.ns);
  EXPECT_EQ(clock_rate(loaded, soon), (uint64_t{1} << clock_fraction_bits) / 3);
  constexpr uint64_t minute_ns = 60'000'000'000;
  constexpr ClockReading late{1000 + 3 * minute_ns, 5000 + minute_ns};
  EXPECT_EQ(rate_start(loaded, late).ns, late.ns);
  EXPECT_EQ(clock_rate(loaded, late), 0u);
}

// Reads the quick clock between two readings of the other clock, at both ends of an interval.
TEST(QuickClock, GoesAsFastAsTheClock) {
  const Clock clock = quick_clock();
  constexpr uint64_t stretch_ns = 20'000'000;
  const uint64_t outer_start = now_ns();
  const uint64_t start = clock();
  const uint64_t inner_start = now_ns();
  while (now_ns() - inner_start < stretch_ns) {
  }
  const uint64_t inner_end = now_ns();
  const uint64_t end = clock();
  const uint64_t outer_end = now_ns();
  const double measured = static_cast<double>(end - start);
  EXPECT_GE(measured, 0.995 * static_cast<double>(inner_end - inner_start));
  EXPECT_LE(measured, 1.005 * static_cast<double>(outer_end - outer_start));
}

}  // namespace
}  // namespace lintel

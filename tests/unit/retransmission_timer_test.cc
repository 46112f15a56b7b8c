#include "reliable/retransmission_timer.h"

#include <gtest/gtest.h>

namespace lintel {
namespace {

constexpr uint64_t us = 1000;
constexpr uint64_t ms = 1'000'000;

class RetransmissionTimerTest : public ::testing::Test {
 protected:
  RetransmissionTimerTest() {
    timer_.open(ms);
    timer_.start(0);
  }
  // Sets a round trip without variation.
  void settle(uint64_t round_trip_ns) {
    for (int i = 0; i < 50; ++i) timer_.measure(round_trip_ns);
    timer_.note_progress(0);
  }
  RetransmissionTimer timer_;
};

TEST_F(RetransmissionTimerTest, AsksBeforeItTimesOut) {
  settle(200 * us);
  uint64_t now = 0;
  unsigned probes = 0;
  for (now = timer_.deadline_ns(); !timer_.time_out(now); now = timer_.deadline_ns()) ++probes;
  EXPECT_EQ(probes, 1u);  // after twice the round trip and the longest delay of an answer
  EXPECT_EQ(now, ms);
  EXPECT_TRUE(timer_.has_timed_out());
}

TEST_F(RetransmissionTimerTest, EachTimeoutInARowTakesTwiceAsLong) {
  settle(200 * us);
  uint64_t last = 0;
  uint64_t waited = ms;
  for (int i = 0; i < 5; ++i, waited *= 2) {
    while (!timer_.time_out(timer_.deadline_ns())) {
    }
    const uint64_t now = last + waited;
    EXPECT_FALSE(timer_.time_out(now + 2 * waited - 1)) << i;
    last = now;
  }
}

// Also when so many probes went without progress that another one would be later than the timeout,
// and when what is sent again waits for the link.
TEST_F(RetransmissionTimerTest, BetweenTwoTimeoutsOneProbeGoes) {
  settle(200 * us);
  for (int i = 0; i < 10; ++i) {
    while (!timer_.time_out(timer_.deadline_ns())) {
    }
  }
  for (int i = 0; i < 5; ++i) {
    uint64_t now = timer_.deadline_ns();
    timer_.start(now);
    unsigned probes = 0;
    for (now = timer_.deadline_ns(); !timer_.time_out(now); now = timer_.deadline_ns()) ++probes;
    EXPECT_EQ(probes, 1u) << i;
  }
}

// What is lost again and again, though probes are answered, goes more and more rarely.
TEST_F(RetransmissionTimerTest, AnswersWithoutProgressCountLikeTimeouts) {
  settle(200 * us);
  while (!timer_.time_out(timer_.deadline_ns())) {
  }
  uint64_t now = timer_.deadline_ns();
  for (uint64_t waited = ms; waited < RoundTrip::longest_timeout_ns / 2; waited *= 2) {
    timer_.start(now);
    EXPECT_LE(timer_.deadline_ns(), now + waited);
    now = timer_.deadline_ns();
    EXPECT_FALSE(timer_.time_out(now));
    timer_.note_answer();
  }
  timer_.start(now);
  EXPECT_GE(timer_.deadline_ns(), now + RoundTrip::longest_timeout_ns / 4);
}

TEST_F(RetransmissionTimerTest, ProgressRestartsItButOnlyAMeasurementShortensIt) {
  settle(200 * us);
  while (!timer_.time_out(timer_.deadline_ns())) {
  }
  timer_.note_progress(10 * ms);
  EXPECT_TRUE(timer_.has_timed_out());
  EXPECT_FALSE(timer_.time_out(12 * ms - 1));
  EXPECT_TRUE(timer_.time_out(12 * ms));
  timer_.measure(200 * us);
  timer_.note_progress(20 * ms);
  EXPECT_FALSE(timer_.has_timed_out());
  EXPECT_TRUE(timer_.time_out(21 * ms));
}

}  // namespace
}  // namespace lintel

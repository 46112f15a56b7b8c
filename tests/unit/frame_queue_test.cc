#include <vector>

#include <gtest/gtest.h>

#include "reliable/retransmission_timer.h"
#include "reliable/send_window.h"

namespace lintel {
namespace {

class FrameQueueTest : public ::testing::Test {
 protected:
  FrameQueueTest() {
    for (uint32_t i = 0; i < 6; ++i) {
      frames_[i].sequence = UINT32_MAX - 2 + i;  // the numbers wrap
      frames_[i].length = 100 + i;
      queue_.append(frames_[i]);
    }
  }
  void send(unsigned count) {
    for (; count != 0; --count) queue_.note_sent(*queue_.unsent().begin());
  }
  // Positions of the frames in frames_.
  std::vector<long> positions(FrameQueue::Range range) const {
    std::vector<long> result;
    for (const FrameBuffer& frame : range) result.push_back(&frame - frames_);
    return result;
  }
  std::vector<long> chain(const FrameBuffer* frame) const {
    std::vector<long> result;
    for (; frame != nullptr; frame = frame->next) result.push_back(frame - frames_);
    return result;
  }
  FrameBuffer frames_[6];
  FrameQueue queue_;
};

using Positions = std::vector<long>;

TEST_F(FrameQueueTest, FramesPassFromUnsentToSent) {
  EXPECT_EQ(positions(queue_.sent()), Positions());
  EXPECT_EQ(positions(queue_.unsent()), Positions({0, 1, 2, 3, 4, 5}));
  send(4);
  EXPECT_EQ(positions(queue_.sent()), Positions({0, 1, 2, 3}));
  EXPECT_EQ(positions(queue_.unsent()), Positions({4, 5}));
  EXPECT_EQ(queue_.newest_unsent(), &frames_[5]);
  EXPECT_EQ(queue_.unsent_frames(), 2u);
  EXPECT_EQ(queue_.unsent_bytes(), 104u + 105u);
  send(2);
  EXPECT_FALSE(queue_.any_unsent());
  EXPECT_EQ(queue_.newest_unsent(), nullptr);
  EXPECT_EQ(queue_.unsent_bytes(), 0u);
  FrameBuffer another;
  queue_.append(another);
  EXPECT_EQ(queue_.newest_unsent(), &another);
  EXPECT_EQ(positions(queue_.sent()), Positions({0, 1, 2, 3, 4, 5}));
}

TEST_F(FrameQueueTest, RemovesSentFramesBeforeANumber) {
  send(4);
  std::vector<long> seen;
  const auto note = [&](FrameBuffer& frame) { seen.push_back(&frame - frames_); };
  EXPECT_EQ(queue_.remove_before(frames_[0].sequence, note), nullptr);
  EXPECT_EQ(chain(queue_.remove_before(frames_[3].sequence, note)), Positions({0, 1, 2}));
  EXPECT_EQ(seen, Positions({0, 1, 2}));
  EXPECT_EQ(queue_.oldest(), &frames_[3]);
  EXPECT_EQ(queue_.frames(), 3u);
  EXPECT_EQ(queue_.bytes(), 103u + 104u + 105u);
  // What was never sent stays, whatever the number.
  EXPECT_EQ(chain(queue_.remove_before(frames_[5].sequence + 1, note)), Positions({3}));
  EXPECT_EQ(queue_.oldest(), &frames_[4]);
}

TEST_F(FrameQueueTest, CountsGrowthOfTheNewest) {
  queue_.note_growth(50);
  EXPECT_EQ(queue_.bytes(), 600u + 15 + 50);
  EXPECT_EQ(queue_.unsent_bytes(), 600u + 15 + 50);
}

TEST_F(FrameQueueTest, IsUsableAfterAllWereRemoved) {
  send(1);
  EXPECT_EQ(chain(queue_.remove_all()), Positions({0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.bytes(), 0u);
  FrameBuffer another;
  queue_.append(another);
  send(1);
  EXPECT_EQ(queue_.remove_before(another.sequence + 1, [](FrameBuffer&) {}), &another);
  EXPECT_TRUE(queue_.empty());
  EXPECT_FALSE(queue_.any_unsent());
}

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

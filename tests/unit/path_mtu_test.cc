// The longest frame that a path takes: suspicion, search, and a path that becomes wider. Frames in
// parts.
#include "reliable/path_mtu.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "reliable/reassembly.h"

namespace lintel {
namespace {

constexpr uint64_t ms = 1'000'000;
constexpr uint64_t second = 1'000 * ms;
constexpr uint64_t round_trip_ns = 100'000;
constexpr uint32_t most_bytes = 8972;

class PathMtuTest : public testing::Test {
 protected:
  void SetUp() override { path_.open(most_bytes); }

  // A frame is lost every 10 ms, and none of that length arrives.
  void lose(uint32_t bytes, uint64_t duration_ns) {
    for (const uint64_t end_ns = now_ns_ + duration_ns; now_ns_ < end_ns; now_ns_ += 10 * ms)
      path_.lost(5, bytes, now_ns_);
  }
  // Lets time pass while the peer answers the probes that reach it. Returns how often the length
  // of frames changed.
  unsigned run(uint64_t duration_ns) {
    unsigned changes = 0;
    for (const uint64_t end_ns = now_ns_ + duration_ns; now_ns_ < end_ns; now_ns_ += ms) {
      if (!path_.is_due(now_ns_)) continue;
      const PathMtu::Step step = path_.go_on(now_ns_);
      changes += step.change != PathMtu::Change::none;
      EXPECT_GE(path_.frame_bytes(), PathMtu::least_bytes);
      EXPECT_LE(path_.frame_bytes(), most_bytes);
      if (step.probe_bytes == 0) continue;
      EXPECT_GT(step.probe_bytes, path_.frame_bytes());
      EXPECT_LE(step.probe_bytes, most_bytes);
      ++probes_;
      number_ += 2;
      path_.sent(number_ - 1, number_, round_trip_ns, now_ns_);
      if (peer_answers_) path_.answered(number_ - 1);
      if (peer_answers_ && step.probe_bytes <= limit_) path_.answered(number_);
    }
    return changes;
  }

  PathMtu path_;
  uint32_t limit_ = most_bytes;  // of the path
  bool peer_answers_ = true;
  uint64_t now_ns_ = second;
  uint32_t number_ = 0;
  unsigned probes_ = 0;
};

TEST_F(PathMtuTest, FramesAreAsLongAsTheRouteTakesAndNothingIsProbed) {
  EXPECT_EQ(path_.frame_bytes(), most_bytes);
  EXPECT_EQ(run(3600 * second), 0u);
  EXPECT_EQ(probes_, 0u);
  EXPECT_EQ(path_.timer_ns(), PathMtu::never);
}

TEST_F(PathMtuTest, ABlackHoleIsFoundWithinASecondAndMeasured) {
  for (const uint32_t limit : {1200u, 1400u, 1472u, 3000u, 8000u, 8971u}) {
    path_.open(most_bytes);
    limit_ = limit;
    const uint64_t start_ns = now_ns_;
    while (!path_.is_due(now_ns_)) {
      lose(most_bytes, 10 * ms);
      ASSERT_LT(now_ns_ - start_ns, second / 2);
    }
    EXPECT_GE(run(2 * ms), 1u);
    EXPECT_EQ(path_.frame_bytes(), PathMtu::base_bytes);
    EXPECT_NE(path_.timer_ns(), PathMtu::never) << "a probe is on the way";
    run(2 * second);
    EXPECT_LE(path_.frame_bytes(), limit);
    EXPECT_GE(path_.frame_bytes() + 16, limit);
    EXPECT_EQ(path_.timer_ns(), PathMtu::never) << "nothing wakes an idle process";
  }
}

TEST_F(PathMtuTest, ANarrowPathGetsTheShortestFrames) {
  limit_ = 600;
  lose(most_bytes, 200 * ms);
  run(2 * second);
  EXPECT_EQ(path_.frame_bytes(), PathMtu::base_bytes);
  lose(PathMtu::base_bytes, 200 * ms);
  run(2 * second);
  EXPECT_LE(path_.frame_bytes(), 600u);
  EXPECT_GE(path_.frame_bytes() + 16, 600u);
  lose(PathMtu::least_bytes, 10 * second);
  EXPECT_EQ(run(second), 0u) << "shorter frames there are none";
}

TEST_F(PathMtuTest, ASingleLossAndLossesAmongArrivalsAreNoBlackHole) {
  path_.lost(5, most_bytes, now_ns_);
  now_ns_ += second;
  EXPECT_FALSE(path_.is_due(now_ns_));
  for (unsigned i = 0; i < 100; ++i) {
    lose(most_bytes, 30 * ms);
    path_.delivered(most_bytes);
    EXPECT_FALSE(path_.is_due(now_ns_));
  }
  for (unsigned i = 0; i < 100; ++i) path_.lost(5, most_bytes, now_ns_);
  EXPECT_FALSE(path_.is_due(now_ns_)) << "a burst that a full queue lost";
}

TEST_F(PathMtuTest, ShorterFramesThatArriveProveNothing) {
  for (unsigned i = 0; i < 20; ++i) {
    lose(most_bytes, 10 * ms);
    path_.delivered(4000);
  }
  EXPECT_TRUE(path_.is_due(now_ns_));
}

// The longest frame waits for the window behind a shorter one.
TEST_F(PathMtuTest, TheFirstOfSeveralLostFramesCounts) {
  path_.lost(5, most_bytes, now_ns_);
  for (unsigned i = 0; i < 20; ++i, now_ns_ += 10 * ms) path_.lost(4, 3000, now_ns_);
  EXPECT_TRUE(path_.is_due(now_ns_));
}

TEST_F(PathMtuTest, ShorterFramesThatAreLostByChanceDoNotHideABlackHole) {
  for (unsigned i = 0; i < 20; ++i, now_ns_ += 5 * ms) {
    path_.lost(5, most_bytes, now_ns_);
    path_.lost(6 + i, 3000, now_ns_);
    path_.delivered(3000);
  }
  EXPECT_TRUE(path_.is_due(now_ns_));
}

// After a false alarm the first probe restores the length.
TEST_F(PathMtuTest, AFalseAlarmIsOverAfterOneProbe) {
  lose(most_bytes, 200 * ms);
  EXPECT_EQ(run(100 * ms), 2u);
  EXPECT_EQ(path_.frame_bytes(), most_bytes);
  EXPECT_EQ(probes_, 1u);
}

TEST_F(PathMtuTest, AWiderPathIsFoundLater) {
  limit_ = 1472;
  lose(most_bytes, 200 * ms);
  run(2 * second);
  const uint32_t narrow = path_.frame_bytes();
  probes_ = 0;
  run(60 * second);
  EXPECT_EQ(path_.frame_bytes(), narrow);
  EXPECT_LE(probes_, 3 * 6u) << "rarer and rarer";
  limit_ = most_bytes;
  run(100 * second);
  EXPECT_EQ(path_.frame_bytes(), most_bytes);
}

// What becomes a little wider is measured as well.
TEST_F(PathMtuTest, APathThatIsHalfRestoredIsMeasuredAgain) {
  limit_ = 1472;
  lose(most_bytes, 200 * ms);
  run(2 * second);
  limit_ = 4072;
  run(30 * second);
  EXPECT_LE(path_.frame_bytes(), 4072u);
  EXPECT_GE(path_.frame_bytes() + 16, 4072u);
}

// A process that was stopped in the middle of the search answers nothing, which proves nothing.
TEST_F(PathMtuTest, ASilentPeerSaysNothingAboutThePath) {
  lose(most_bytes, 200 * ms);
  peer_answers_ = false;
  run(8 * second);
  EXPECT_LE(probes_, 8u);
  EXPECT_EQ(path_.timer_ns(), PathMtu::never) << "the search has ended";
  peer_answers_ = true;
  run(20 * second);
  EXPECT_EQ(path_.frame_bytes(), most_bytes);
}

class FramePartsTest : public testing::Test {
 protected:
  static constexpr uint32_t longest_frame = 9000;
  using Taken = FrameParts::Taken;
  void SetUp() override {
    ASSERT_TRUE(pool_.open(longest_frame, 1 << 20));
    for (size_t i = 0; i < body_.size(); ++i) body_[i] = static_cast<std::byte>(i * 7 + (i >> 8));
  }
  void TearDown() override {
    parts_.drop(pool_);
    EXPECT_EQ(pool_.used_bytes(), 0u);
  }
  Taken take(uint32_t sequence, uint32_t offset, uint32_t length, uint32_t whole) {
    FrameHeader header{};
    header.sequence = sequence;
    header.flags = frame_first | frame_wants_ack;
    const PartHeader part{offset, whole, 0};
    std::vector<std::byte> bytes(sizeof part + length);
    std::memcpy(bytes.data(), &part, sizeof part);
    for (uint32_t i = 0; i < length; ++i)
      bytes[sizeof part + i] = body_[(offset + i) % body_.size()];
    return parts_.take(pool_, longest_frame, header, bytes.data(),
                       static_cast<uint32_t>(bytes.size()), room_bytes_);
  }
  void expect_whole(uint32_t sequence) {
    FrameBuffer* const whole = parts_.take_whole();
    ASSERT_NE(whole, nullptr);
    EXPECT_EQ(whole->sequence, sequence);
    EXPECT_EQ(whole->flags, frame_first);
    EXPECT_EQ(whole->length, sizeof(FrameHeader) + body_.size());
    EXPECT_EQ(std::memcmp(whole->data() + sizeof(FrameHeader), body_.data(), body_.size()), 0);
    pool_.release(whole);
  }

  FramePool pool_;
  FrameParts parts_;
  uint64_t room_bytes_ = UINT64_MAX;
  std::vector<std::byte> body_ = std::vector<std::byte>(3000);
};

TEST_F(FramePartsTest, BecomeTheFrame) {
  EXPECT_EQ(take(7, 0, 1400, 3000), Taken::more);
  EXPECT_EQ(take(7, 1400, 1400, 3000), Taken::more);
  EXPECT_EQ(take(7, 2800, 200, 3000), Taken::whole);
  expect_whole(7);
}

// Lost, doubled and overtaken parts: the sender repeats all of them, in others if the path has
// become narrower.
TEST_F(FramePartsTest, ArePutTogetherFromSeveralAttempts) {
  EXPECT_EQ(take(7, 1400, 1400, 3000), Taken::more);
  EXPECT_TRUE(parts_.is_empty()) << "nothing is kept without the beginning";
  EXPECT_EQ(take(7, 0, 1400, 3000), Taken::more);
  EXPECT_EQ(take(7, 2800, 200, 3000), Taken::more);
  EXPECT_EQ(take(7, 0, 1400, 3000), Taken::more);
  for (uint32_t at = 0; at < 2500; at += 500) EXPECT_EQ(take(7, at, 500, 3000), Taken::more);
  EXPECT_EQ(take(7, 2500, 500, 3000), Taken::whole);
  expect_whole(7);
}

TEST_F(FramePartsTest, OfAnotherFrameTakeThePlace) {
  EXPECT_EQ(take(7, 0, 1400, 3000), Taken::more);
  EXPECT_EQ(take(8, 1400, 1400, 3000), Taken::more);
  EXPECT_TRUE(parts_.is_empty());
  EXPECT_EQ(take(8, 0, 2000, 3000), Taken::more);
  EXPECT_EQ(take(8, 2000, 1000, 3000), Taken::whole);
  expect_whole(8);
}

TEST_F(FramePartsTest, AreCheckedBeforeTheyAreUsed) {
  constexpr uint32_t longest_body = longest_frame - sizeof(FrameHeader);
  EXPECT_EQ(take(7, 0, 0, 3000), Taken::malformed) << "empty";
  EXPECT_EQ(take(7, 0, 100, 99), Taken::malformed);
  EXPECT_EQ(take(7, 3000, 1, 3000), Taken::malformed);
  EXPECT_EQ(take(7, UINT32_MAX, 1, 3000), Taken::malformed);
  EXPECT_EQ(take(7, 2950, 51, 3000), Taken::malformed);
  EXPECT_EQ(take(7, 0, 100, longest_body + 1), Taken::malformed);
  EXPECT_EQ(take(7, 0, 100, UINT32_MAX), Taken::malformed);
  EXPECT_TRUE(parts_.is_empty());
  EXPECT_EQ(take(7, 0, 100, longest_body), Taken::more);
}

TEST_F(FramePartsTest, WithoutABufferComeAgain) {
  FrameBuffer* taken = nullptr;
  while (FrameBuffer* const buffer = pool_.acquire(longest_frame)) {
    buffer->next = taken;
    taken = buffer;
  }
  EXPECT_EQ(take(7, 0, 1400, 3000), Taken::no_room);
  pool_.release_chain(taken);
  room_bytes_ = 3000;
  EXPECT_EQ(take(7, 0, 1400, 3000), Taken::no_room) << "the peer has its share";
  room_bytes_ += sizeof(FrameHeader);
  EXPECT_EQ(take(7, 0, 3000, 3000), Taken::whole);
}

}  // namespace
}  // namespace lintel

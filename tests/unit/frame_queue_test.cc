#include <vector>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lintel

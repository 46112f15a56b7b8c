// Assembly of messages from frames: lengths, shortage of buffers, order of progress.
#include "reliable/reassembly.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "reliable_test_support.h"

namespace lintel::test {
namespace {

constexpr uint32_t longest = 4000;

class ReassemblyTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reassembly_.open(longest, 64 * 1024)); }
  bool append(HalfMessage& half, uint32_t length, uint64_t now_ns) {
    const std::vector<std::byte> bytes(length, std::byte{7});
    return reassembly_.append(half, bytes.data(), length, now_ns);
  }
  Reassembly reassembly_;
};

TEST_F(ReassemblyTest, AMessageIsFinishedWhenAllOfItHasCome) {
  HalfMessage half;
  ASSERT_TRUE(reassembly_.begin(half, 300, 1));
  EXPECT_TRUE(append(half, 200, 2));
  EXPECT_EQ(reassembly_.finish(half), nullptr);
  EXPECT_TRUE(append(half, 100, 3));
  FrameBuffer* const whole = reassembly_.finish(half);
  ASSERT_NE(whole, nullptr);
  EXPECT_EQ(whole->length, 300u);
  EXPECT_EQ(std::vector<std::byte>(whole->data(), whole->data() + 300),
            std::vector<std::byte>(300, std::byte{7}));
  EXPECT_EQ(half.buffer, nullptr);
  EXPECT_EQ(reassembly_.oldest(), nullptr);
  reassembly_.pool().release(whole);
  EXPECT_EQ(reassembly_.used_bytes(), 0u);
}

TEST_F(ReassemblyTest, MoreBytesThanAnnouncedAreRefused) {
  HalfMessage half;
  ASSERT_TRUE(reassembly_.begin(half, 300, 1));
  EXPECT_TRUE(append(half, 299, 1));
  EXPECT_FALSE(append(half, 2, 1));
}

TEST_F(ReassemblyTest, TheOldestIsTheOneWithoutProgressForLongest) {
  HalfMessage a, b, c;
  for (HalfMessage* half : {&a, &b, &c}) ASSERT_TRUE(reassembly_.begin(*half, longest, 1));
  EXPECT_EQ(reassembly_.oldest(), &a);
  EXPECT_TRUE(append(a, 10, 2));
  EXPECT_EQ(reassembly_.oldest(), &b);
  reassembly_.drop(b);
  EXPECT_EQ(reassembly_.oldest(), &c);
  reassembly_.drop(c);
  EXPECT_EQ(reassembly_.oldest(), &a);
  EXPECT_EQ(a.progress_ns, 2u);
  reassembly_.drop(a);
  reassembly_.drop(a);
  EXPECT_EQ(reassembly_.oldest(), nullptr);
  EXPECT_EQ(reassembly_.used_bytes(), 0u);
}

TEST_F(ReassemblyTest, TheBufferOfAShortMessageServesALongOne) {
  std::vector<HalfMessage> halves(100);
  size_t begun = 0;
  while (reassembly_.begin(halves[begun], 300, 1)) ++begun;
  EXPECT_GE(begun, 10u);
  EXPECT_LE(begun, 64u * 1024 / longest);
  reassembly_.drop(*reassembly_.oldest());
  EXPECT_TRUE(reassembly_.begin(halves[begun], longest, 1));
}

// Parts of long messages that arrive before earlier frames. They are delivered at once, each once;
// all other messages wait for their turn.

constexpr size_t part_bytes = 8000;

MessageHeader part(uint64_t number, uint8_t flags = 0) {
  MessageHeader header{};
  header.kind = MessageKind::data;
  header.flags = flags;
  header.remote_offset = number;
  return header;
}

class ReliableEarlyData : public ConnectedPair {
 protected:
  ReliableEarlyData() : ConnectedPair(false) {}

  // The number of copies in which each of the next long frames arrives. All other frames arrive
  // once.
  void carry_long_frames(std::vector<unsigned> copies) {
    network_.script = [copies, seen = size_t{0}](const LinkAddress&, const LinkAddress&,
                                                 const Frame& frame) mutable {
      const bool is_long = frame.size() > part_bytes;
      const unsigned wanted = is_long && seen < copies.size() ? copies[seen++] : 1;
      return std::vector<MemoryNetwork::Copy>(wanted, MemoryNetwork::Copy{frame, 0});
    };
  }
  void send_part(uint64_t number, uint8_t flags = 0) {
    ASSERT_EQ(first_.send(link_, part(number, flags),
                          std::vector<std::byte>(part_bytes, std::byte(number))),
              SendStatus::sent);
  }
  std::vector<uint64_t> arrived() const {
    std::vector<uint64_t> numbers;
    for (const MemoryProcess::Message& message : second_.messages) {
      EXPECT_EQ(message.payload,
                std::vector<std::byte>(part_bytes, std::byte(message.header.remote_offset)));
      numbers.push_back(message.header.remote_offset);
    }
    return numbers;
  }
};

using Numbers = std::vector<uint64_t>;

TEST_F(ReliableEarlyData, PartsThatWentUpAreNotKept) {
  carry_long_frames({0, 1, 1, 1, 1, 0, 0, 0});
  for (uint64_t i = 1; i <= 5; ++i) send_part(i);
  send_part(6, flag_last);
  ASSERT_TRUE(run_until(all_, [&] { return second_.messages.size() == 4; }));
  EXPECT_EQ(arrived(), (Numbers{2, 3, 4, 5}));
  EXPECT_LT(second_.transport().frame_memory_used(), part_bytes);
  ASSERT_TRUE(run_until(all_, [&] { return first_.transport().all_delivered(); }));
  EXPECT_EQ(arrived(), (Numbers{2, 3, 4, 5, 1, 6}));
  EXPECT_EQ(second_.transport().frame_memory_used(), 0u);
}

// Frames that are kept for a peer that acknowledges nothing.

// The silent peer had a large window before.
TEST(ReliableShareTest, ASilentPeerLeavesMemoryForTheOthers) {
  MemoryNetwork network;
  ReliableSettings settings;
  settings.memory_bytes = 128 * 1024;
  MemoryProcess sender(network, {1, 1}, settings);
  MemoryProcess silent(network, {2, 2});
  MemoryProcess other(network, {3, 3});
  const std::vector<MemoryProcess*> all{&sender, &silent, &other};
  Link* const to_silent = sender.connect(silent.id());
  Link* const to_other = sender.connect(other.id());
  widen_window(sender, silent, to_silent, all);
  widen_window(sender, other, to_other, all);
  const std::vector<std::byte> payload = numbered_bytes(1, 1200);
  const std::vector<MemoryProcess*> awake{&sender, &other};
  unsigned taken = 0;
  while (sender.send(to_silent, numbered_put(taken), payload) == SendStatus::sent) {
    ++taken;
    run_for(awake, 1'000);
    ASSERT_LT(taken, 1000u);
  }
  EXPECT_GE(taken, 8u);
  for (unsigned i = 0; i < 8; ++i)
    EXPECT_EQ(sender.send(to_other, numbered_put(i), payload), SendStatus::sent) << i;
  EXPECT_TRUE(run_until(awake, [&] { return other.messages.size() == 8; }));
  // Its own messages go on when it acknowledges.
  EXPECT_TRUE(run_until(all, [&] { return silent.messages.size() == taken; }));
  send_surely(sender, to_silent, all, numbered_put(taken), payload);
}

}  // namespace
}  // namespace lintel::test

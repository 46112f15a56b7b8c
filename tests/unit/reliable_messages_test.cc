// Data messages, unreliable messages, and memory that is not there. The simulation shows that all
// messages arrive once, in order and unchanged.
#include "unit/reliable_test_support.h"
#include "util/guarded_memory.h"

namespace lintel::test {
namespace {

constexpr ProcessId first_id{0x0a000001, 10};
constexpr ProcessId second_id{0x0a000002, 20};

// Two connected processes.
class ReliableMessages : public testing::Test {
 protected:
  ReliableMessages() { send_surely(first_, link_, all_, numbered_put(0), {}); }
  // The script refers to variables of the test.
  ~ReliableMessages() override { network_.script = nullptr; }

  MemoryNetwork network_;
  MemoryProcess first_{network_, first_id};
  MemoryProcess second_{network_, second_id};
  const std::vector<MemoryProcess*> all_{&first_, &second_};
  Link* const link_ = first_.connect(second_id);
};

// Data messages are collected into fewer, larger bursts. All collected messages are sent.
TEST_F(ReliableMessages, DataMessagesFillFramesAndFlow) {
  uint64_t data_frames = 0;
  EXPECT_EQ(link_->max_data_bytes, (1472 - message_frame_overhead) & ~7u);
  const uint64_t count = 3000;
  network_.script = [&](const LinkAddress&, const LinkAddress&, const Frame& frame) {
    data_frames += header_of(frame).type == FrameType::data;
    return std::vector<MemoryNetwork::Copy>{{frame, 0}};
  };
  for (uint64_t i = 1; i <= count; ++i) {
    MessageHeader header = numbered_put(i);
    header.kind = MessageKind::data;
    header.flags = i == count ? flag_last : 0;
    send_surely(first_, link_, all_, header, numbered_bytes(i, link_->max_data_bytes));
  }
  ASSERT_TRUE(run_until(all_, [&] { return second_.messages.size() == count + 1; }));
  for (uint64_t i = 1; i <= count; ++i)
    ASSERT_EQ(second_.messages[i].payload, numbered_bytes(i, link_->max_data_bytes));
  // One frame for each message, and one acknowledgement for many.
  EXPECT_LE(data_frames, count + 10);
  EXPECT_LE(second_.transport().counters().acks_sent, count / 4);
  const SendStatus too_long = first_.send(
      link_, numbered_put(1), numbered_bytes(0, ReliableTransport::max_eager_bytes + 1));
  EXPECT_EQ(too_long, SendStatus::inaccessible);
}

// PTL_MD_UNRELIABLE: one frame, without state for retransmission, counted.
TEST_F(ReliableMessages, UnreliablePutsAreSentOnce) {
  run_for(all_, 5'000'000);
  MessageHeader header = numbered_put(1);
  header.flags = flag_unreliable;
  EXPECT_EQ(first_.send(link_, header, numbered_bytes(1, 500)), SendStatus::sent);
  EXPECT_TRUE(run_until(
      all_, [&] { return second_.messages.size() == 2; }, 10'000'000));
  EXPECT_EQ(second_.messages[1].payload, numbered_bytes(1, 500));
  EXPECT_EQ(first_.transport().frame_memory_used(), 0u);
  network_.script = [](const LinkAddress&, const LinkAddress&, const Frame&) {
    return std::vector<MemoryNetwork::Copy>{};
  };
  EXPECT_EQ(first_.send(link_, header, numbered_bytes(2, 500)), SendStatus::sent);
  network_.script = nullptr;
  run_for(all_, 50'000'000);
  EXPECT_EQ(second_.messages.size(), 2u) << "it was lost, and is not sent again";
  EXPECT_EQ(first_.transport().counters().datagrams_sent, 2u);
  EXPECT_EQ(first_.transport().counters().retransmissions, 0u);
  EXPECT_EQ(second_.transport().counters().datagrams_received, 1u);
  // A message that does not fit in a frame is sent reliably.
  EXPECT_EQ(first_.send(link_, header, numbered_bytes(3, 5000)), SendStatus::sent);
  EXPECT_TRUE(run_until(
      all_, [&] { return second_.messages.size() == 3; }, 10'000'000));
  EXPECT_EQ(first_.transport().counters().datagrams_sent, 2u);
}

// They do not wait for the end of a message of several frames.
TEST_F(ReliableMessages, UnreliablePutsOvertake) {
  widen_window(first_, second_, link_, all_);
  unsigned frames = 0;
  network_.script = [&](const LinkAddress&, const LinkAddress&,
                        const Frame& frame) -> std::vector<MemoryNetwork::Copy> {
    if (++frames == 3) return {};  // the third frame of the first message is lost
    return {{frame, 0}};
  };
  EXPECT_EQ(first_.send(link_, numbered_put(1), numbered_bytes(1, 8000)), SendStatus::sent);
  MessageHeader header = numbered_put(2);
  header.flags = flag_unreliable;
  EXPECT_EQ(first_.send(link_, header, numbered_bytes(2, 100)), SendStatus::sent);
  ASSERT_TRUE(run_until(all_, [&] { return second_.messages.size() == 3; }));
  EXPECT_EQ(second_.messages[1].header.match_bits, 2u);
  EXPECT_EQ(second_.messages[2].payload, numbered_bytes(1, 8000));
  EXPECT_EQ(second_.transport().counters().malformed, 0u);
}

TEST_F(ReliableMessages, MemoryThatIsNotThereIsToldAndNothingIsSent) {
  run_for(all_, 5'000'000);
  const uint64_t before = network_.frames_carried;
  install_fault_handler();
  std::byte good[64];
  const Piece pieces[2] = {{good, sizeof good}, {reinterpret_cast<std::byte*>(64), 4000}};
  EXPECT_EQ(first_.transport().send(*link_, numbered_put(1), pieces, 2), SendStatus::inaccessible);
  EXPECT_EQ(network_.frames_carried, before);
  EXPECT_EQ(first_.transport().frame_memory_used(), 0u);
}

}  // namespace
}  // namespace lintel::test

// Data messages, unreliable messages, and memory that is not there. The simulation shows that all
// messages arrive once, in order and unchanged.
#include "unit/reliable_test_support.h"
#include "util/guarded_memory.h"

namespace lintel::test {
namespace {

constexpr ProcessId first_id{0x0a000001, 10};
constexpr ProcessId second_id{0x0a000002, 20};

// Data messages are collected into fewer, larger bursts. All collected messages are sent.
TEST(Reliable, DataMessagesFillFramesAndFlow) {
  uint64_t data_frames = 0;
  MemoryNetwork network;
  MemoryProcess first(network, first_id);
  MemoryProcess second(network, second_id);
  const std::vector<MemoryProcess*> all{&first, &second};
  Link* const link = first.connect(second_id);
  send_surely(first, link, all, numbered_put(0), {});
  EXPECT_EQ(link->max_data_bytes, (1472 - message_frame_overhead) & ~7u);
  const uint64_t count = 3000;
  network.script = [&](const LinkAddress&, const LinkAddress&, const Frame& frame) {
    data_frames += header_of(frame).type == FrameType::data;
    return std::vector<MemoryNetwork::Copy>{{frame, 0}};
  };
  for (uint64_t i = 1; i <= count; ++i) {
    MessageHeader header = numbered_put(i);
    header.kind = MessageKind::data;
    header.flags = i == count ? flag_last : 0;
    send_surely(first, link, all, header, numbered_bytes(i, link->max_data_bytes));
  }
  ASSERT_TRUE(run_until(all, [&] { return second.messages.size() == count + 1; }));
  for (uint64_t i = 1; i <= count; ++i)
    ASSERT_EQ(second.messages[i].payload, numbered_bytes(i, link->max_data_bytes));
  // One frame for each message, and one acknowledgement for many.
  EXPECT_LE(data_frames, count + 10);
  EXPECT_LE(second.transport().counters().acks_sent, count / 4);
  const SendStatus too_long =
      first.send(link, numbered_put(1), numbered_bytes(0, ReliableTransport::max_eager_bytes + 1));
  EXPECT_EQ(too_long, SendStatus::inaccessible);
}

// PTL_MD_UNRELIABLE: one frame, without state for retransmission, counted.
TEST(Reliable, UnreliablePutsAreSentOnce) {
  MemoryNetwork network;
  MemoryProcess first(network, first_id);
  MemoryProcess second(network, second_id);
  const std::vector<MemoryProcess*> all{&first, &second};
  Link* const link = first.connect(second_id);
  send_surely(first, link, all, numbered_put(0), {});
  run_for(all, 5'000'000);
  MessageHeader header = numbered_put(1);
  header.flags = flag_unreliable;
  EXPECT_EQ(first.send(link, header, numbered_bytes(1, 500)), SendStatus::sent);
  EXPECT_TRUE(run_until(
      all, [&] { return second.messages.size() == 2; }, 10'000'000));
  EXPECT_EQ(second.messages[1].payload, numbered_bytes(1, 500));
  EXPECT_EQ(first.transport().frame_memory_used(), 0u);
  network.script = [](const LinkAddress&, const LinkAddress&, const Frame&) {
    return std::vector<MemoryNetwork::Copy>{};
  };
  EXPECT_EQ(first.send(link, header, numbered_bytes(2, 500)), SendStatus::sent);
  network.script = nullptr;
  run_for(all, 50'000'000);
  EXPECT_EQ(second.messages.size(), 2u) << "it was lost, and is not sent again";
  EXPECT_EQ(first.transport().counters().datagrams_sent, 2u);
  EXPECT_EQ(first.transport().counters().retransmissions, 0u);
  EXPECT_EQ(second.transport().counters().datagrams_received, 1u);
  // A message that does not fit in a frame is sent reliably.
  EXPECT_EQ(first.send(link, header, numbered_bytes(3, 5000)), SendStatus::sent);
  EXPECT_TRUE(run_until(
      all, [&] { return second.messages.size() == 3; }, 10'000'000));
  EXPECT_EQ(first.transport().counters().datagrams_sent, 2u);
}

// They do not wait for the end of a message of several frames.
TEST(Reliable, UnreliablePutsOvertake) {
  MemoryNetwork network;
  MemoryProcess first(network, first_id);
  MemoryProcess second(network, second_id);
  const std::vector<MemoryProcess*> all{&first, &second};
  Link* const link = first.connect(second_id);
  send_surely(first, link, all, numbered_put(0), {});
  widen_window(first, second, link, all);
  unsigned frames = 0;
  network.script = [&](const LinkAddress&, const LinkAddress&,
                       const Frame& frame) -> std::vector<MemoryNetwork::Copy> {
    if (++frames == 3) return {};  // the third frame of the first message is lost
    return {{frame, 0}};
  };
  EXPECT_EQ(first.send(link, numbered_put(1), numbered_bytes(1, 8000)), SendStatus::sent);
  MessageHeader header = numbered_put(2);
  header.flags = flag_unreliable;
  EXPECT_EQ(first.send(link, header, numbered_bytes(2, 100)), SendStatus::sent);
  ASSERT_TRUE(run_until(all, [&] { return second.messages.size() == 3; }));
  EXPECT_EQ(second.messages[1].header.match_bits, 2u);
  EXPECT_EQ(second.messages[2].payload, numbered_bytes(1, 8000));
  EXPECT_EQ(second.transport().counters().malformed, 0u);
}

TEST(Reliable, MemoryThatIsNotThereIsToldAndNothingIsSent) {
  MemoryNetwork network;
  MemoryProcess first(network, first_id);
  MemoryProcess second(network, second_id);
  Link* const link = first.connect(second_id);
  send_surely(first, link, {&first, &second}, numbered_put(0), {});
  run_for({&first, &second}, 5'000'000);
  const uint64_t before = network.frames_carried;
  install_fault_handler();
  std::byte good[64];
  const Piece pieces[2] = {{good, sizeof good}, {reinterpret_cast<std::byte*>(64), 4000}};
  EXPECT_EQ(first.transport().send(*link, numbered_put(1), pieces, 2), SendStatus::inaccessible);
  EXPECT_EQ(network.frames_carried, before);
  EXPECT_EQ(first.transport().frame_memory_used(), 0u);
}

}  // namespace
}  // namespace lintel::test

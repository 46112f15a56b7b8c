// Messages over links that lose, duplicate, reorder and damage frames. All arrive once, in order
// and unchanged.
#include <random>

#include "support/deadlines.h"
#include "unit/reliable_test_support.h"
#include "util/guarded_memory.h"

namespace lintel::test {
namespace {

constexpr ProcessId first_id{0x0a000001, 10};
constexpr ProcessId second_id{0x0a000002, 20};

// Faults of a network, derived from a seed.
class Trouble {
 public:
  Trouble(double drop, double dup, double reorder, double corrupt, unsigned seed)
      : drop_(drop), dup_(dup), reorder_(reorder), corrupt_(corrupt), dice_(seed) {}

  std::vector<MemoryNetwork::Copy> operator()(const LinkAddress&, const LinkAddress&,
                                              const Frame& frame) {
    if (happens(drop_)) return {};
    std::vector<MemoryNetwork::Copy> copies{{frame, happens(reorder_) ? 30'000u : 0u}};
    if (happens(corrupt_)) {
      const size_t bit = dice_() % (frame.size() * 8);
      copies[0].frame[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    }
    if (happens(dup_)) copies.push_back({frame, 12'000});
    return copies;
  }

 private:
  bool happens(double probability) {
    return std::uniform_real_distribution<>(0, 1)(dice_) < probability;
  }
  double drop_, dup_, reorder_, corrupt_;
  std::mt19937 dice_;
};

struct Case {
  const char* name;
  double drop, dup, reorder, corrupt;
  uint32_t mtu;
  unsigned seed;
};

class ReliableMessages : public testing::TestWithParam<Case> {
 protected:
  MemoryNetwork network_;
};

TEST_P(ReliableMessages, ArriveOnceInOrderAndIntactInBothDirections) {
  const Case& c = GetParam();
  network_.script = Trouble(c.drop, c.dup, c.reorder, c.corrupt, c.seed);
  MemoryProcess first(network_, first_id, {}, c.mtu);
  MemoryProcess second(network_, second_id, {}, c.mtu);
  const std::vector<MemoryProcess*> all{&first, &second};
  Link* const to_second = first.connect(second_id);
  Link* const to_first = second.connect(first_id);
  ASSERT_NE(to_second, nullptr);
  const uint64_t count = long_tests() ? 50'000 : 1'500;
  std::mt19937 dice(c.seed + 1);
  std::vector<size_t> lengths;
  for (uint64_t i = 0; i < count; ++i)
    lengths.push_back(i % 3 == 0 ? dice() % 64 : dice() % (ReliableTransport::max_eager_bytes + 1));
  for (uint64_t i = 0; i < count; ++i) {
    send_surely(first, to_second, all, numbered_put(i), numbered_bytes(i, lengths[i]));
    send_surely(second, to_first, all, numbered_put(i), numbered_bytes(i + 1, lengths[i]));
  }
  ASSERT_TRUE(run_until(
      all, [&] { return first.messages.size() >= count && second.messages.size() >= count; }));
  ASSERT_TRUE(run_until(all, [&] {
    return first.transport().all_delivered() && second.transport().all_delivered();
  }));
  for (MemoryProcess* receiver : all) {
    const uint64_t shift = receiver == &first ? 1 : 0;
    ASSERT_EQ(receiver->messages.size(), count);
    for (uint64_t i = 0; i < count; ++i) {
      ASSERT_EQ(receiver->messages[i].header.match_bits, i);
      ASSERT_EQ(receiver->messages[i].payload, numbered_bytes(i + shift, lengths[i])) << i;
    }
    EXPECT_TRUE(receiver->failed.empty());
    if (c.corrupt == 0) {
      EXPECT_EQ(receiver->transport().counters().malformed, 0u);
    }
    EXPECT_EQ(receiver->transport().frame_memory_used(), 0u)
        << "an idle connection keeps no frames";
  }
  const ReliableCounters counters = first.transport().counters();
  if (c.drop > 0) {
    EXPECT_GT(counters.retransmissions, 0u);
  }
  if (c.dup > 0) {
    EXPECT_GT(counters.duplicates, 0u);
  }
  if (c.corrupt > 0) {
    EXPECT_GT(counters.damaged, 0u);
  }
  if (c.drop + c.reorder > 0) {
    EXPECT_GT(counters.out_of_order, 0u);
  } else if (c.dup + c.corrupt == 0) {
    EXPECT_EQ(counters.retransmissions, 0u);
    EXPECT_EQ(counters.timeouts, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Links, ReliableMessages,
                         testing::Values(Case{"good", 0, 0, 0, 0, 1472, 1},
                                         Case{"good_jumbo", 0, 0, 0, 0, 9000, 2},
                                         Case{"losing", 0.1, 0, 0, 0, 1472, 3},
                                         Case{"doubling", 0, 0.2, 0, 0, 1472, 4},
                                         Case{"reordering", 0, 0, 0.2, 0, 1472, 5},
                                         Case{"damaging", 0, 0, 0, 0.05, 1472, 6},
                                         Case{"all_at_once", 0.05, 0.05, 0.05, 0.02, 1472, 7},
                                         Case{"small_frames", 0.05, 0.05, 0.05, 0.02, 512, 8},
                                         Case{"terrible", 0.4, 0.1, 0.2, 0.05, 4000, 9}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Reliable, SequenceNumbersWrap) {
  MemoryNetwork network;
  network.script = Trouble(0.05, 0.05, 0.05, 0, 3);
  ReliableSettings settings;
  settings.first_sequence = UINT32_MAX - 100;
  MemoryProcess first(network, first_id, settings);
  MemoryProcess second(network, second_id, settings);
  Link* const link = first.connect(second_id);
  for (uint64_t i = 0; i < 400; ++i)
    send_surely(first, link, {&first, &second}, numbered_put(i), numbered_bytes(i, 100));
  ASSERT_TRUE(run_until({&first, &second}, [&] { return second.messages.size() == 400; }));
  for (uint64_t i = 0; i < 400; ++i) EXPECT_EQ(second.messages[i].header.match_bits, i);
}

// Routers must not fragment frames, so each side sends what fits both routes.
TEST(Reliable, BothSidesSendFramesThatBothRoutesTake) {
  MemoryNetwork network;
  MemoryProcess first(network, first_id, {}, 9000);
  MemoryProcess second(network, second_id, {}, 9000);
  second.link().route_mtu = 1472;
  const std::vector<MemoryProcess*> all{&first, &second};
  Link* const to_second = first.connect(second_id);
  Link* const to_first = second.connect(first_id);
  MessageHeader data{};
  data.kind = MessageKind::data;
  for (uint64_t i = 0; i < 10; ++i) {
    if (i == 9) data.flags = flag_last;  // others wait for more of the same
    send_surely(first, to_second, all, data, numbered_bytes(i, to_second->max_data_bytes));
    send_surely(second, to_first, all, data, numbered_bytes(i, to_first->max_data_bytes));
  }
  EXPECT_TRUE(
      run_until(all, [&] { return first.messages.size() == 10 && second.messages.size() == 10; }));
  EXPECT_LT(to_first->max_data_bytes, 1472u);
  EXPECT_EQ(to_second->max_data_bytes, to_first->max_data_bytes);
  EXPECT_TRUE(first.failed.empty());
  EXPECT_TRUE(second.failed.empty());
}

// No later frame reveals the loss of the last ones. A probe does, long before the timeout.
TEST(Reliable, LostLastFramesComeAgainAfterAFewRoundTrips) {
  MemoryNetwork network;
  MemoryProcess first(network, first_id);
  MemoryProcess second(network, second_id);
  const std::vector<MemoryProcess*> all{&first, &second};
  Link* const link = first.connect(second_id);
  send_surely(first, link, all, numbered_put(0), {});
  widen_window(first, second, link, all);
  uint64_t lost = 0;
  network.script = [&](const LinkAddress&, const LinkAddress&, const Frame& frame) {
    const bool loses = lost < 3 && header_of(frame).type == FrameType::data;
    lost += loses;
    return loses ? std::vector<MemoryNetwork::Copy>{}
                 : std::vector<MemoryNetwork::Copy>{{frame, 0}};
  };
  EXPECT_EQ(first.send(link, numbered_put(1), numbered_bytes(1, 4000)), SendStatus::sent);
  EXPECT_TRUE(run_until(
      all, [&] { return second.messages.size() == 2; }, 900'000));
  EXPECT_EQ(lost, 3u);
  EXPECT_EQ(first.transport().counters().timeouts, 0u);
  EXPECT_EQ(first.transport().counters().retransmissions, 3u);
}

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

TEST(Reliable, TheReceiverIsNeverSentMoreThanItSaysItTakes) {
  constexpr uint64_t capacity = 16 * 1024;
  MemoryNetwork network;
  MemoryProcess first(network, first_id);
  MemoryProcess second(network, second_id, {}, 1472, capacity);
  Link* const link = first.connect(second_id);
  send_surely(first, link, {&first, &second}, numbered_put(0), {});
  widen_window(first, second, link, {&first, &second});
  uint64_t carried = 0;
  network.script = [&](const LinkAddress& from, const LinkAddress&,
                       const Frame& frame) -> std::vector<MemoryNetwork::Copy> {
    if (from == address_of(first_id)) carried += frame.size();
    return {{frame, 0}};
  };
  // The second process does not poll; the first one sends as much as it may.
  for (uint64_t i = 0; i < 1000; ++i)
    if (first.send(link, numbered_put(i), numbered_bytes(i, 1000)) != SendStatus::sent) break;
  EXPECT_GT(carried, capacity / 4);
  EXPECT_LE(carried, capacity);
}

TEST(Reliable, ALinkThatIsFullIsTriedAgain) {
  MemoryNetwork network;
  MemoryProcess first(network, first_id);
  MemoryProcess second(network, second_id);
  const std::vector<MemoryProcess*> all{&first, &second};
  Link* const link = first.connect(second_id);
  send_surely(first, link, all, numbered_put(0), {});
  run_for(all, 1'000'000);
  first.link().full = true;
  EXPECT_EQ(first.send(link, numbered_put(1), {}), SendStatus::sent);
  run_for(all, 10'000'000);
  EXPECT_EQ(second.messages.size(), 1u);
  EXPECT_GE(first.transport().sleep_limit_ns(), 0) << "nothing else would wake the poller";
  first.link().full = false;
  EXPECT_TRUE(run_until(
      all, [&] { return second.messages.size() == 2; }, 10'000'000));
}

// Memory for frames is shared and bounded. A sender that finds none continues later.
TEST(Reliable, FramesOfAllPeersTogetherAreBounded) {
  ReliableSettings settings;
  settings.memory_bytes = 1 << 20;
  MemoryNetwork network;
  MemoryProcess first(network, first_id, settings);
  std::vector<std::unique_ptr<MemoryProcess>> others;
  std::vector<MemoryProcess*> all{&first};
  std::vector<Link*> links;
  for (uint32_t i = 0; i < 16; ++i) {
    others.push_back(std::make_unique<MemoryProcess>(network, ProcessId{100 + i, 1}));
    all.push_back(others.back().get());
    links.push_back(first.connect(others.back()->id()));
    send_surely(first, links.back(), all, numbered_put(0), {});
  }
  run_for(all, 5'000'000);
  unsigned refused = 0;
  for (unsigned round = 0; round < 64; ++round)
    for (Link* link : links)
      refused += first.send(link, numbered_put(round + 1), numbered_bytes(round, 8000)) !=
                 SendStatus::sent;
  EXPECT_GT(refused, 0u);
  EXPECT_LE(first.transport().frame_memory_used(), settings.memory_bytes);
  for (Link* link : links)
    send_surely(first, link, all, numbered_put(1000), numbered_bytes(1, 8000));
  EXPECT_TRUE(run_until(all, [&] { return first.transport().all_delivered(); }));
  for (const auto& other : others) EXPECT_EQ(other->messages.back().header.match_bits, 1000u);
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

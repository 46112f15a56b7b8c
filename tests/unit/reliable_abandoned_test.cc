// Senders that end in the middle of messages, and the buffers of these messages.
#include <gtest/gtest.h>

#include "reliable_test_support.h"

namespace lintel::test {
namespace {

constexpr uint64_t peer_timeout_ns = 10'000'000'000;
constexpr uint32_t message_bytes = 8000;
constexpr ProcessId target_id{1, 1};

ProcessId gone_id(uint32_t number) { return {9, number + 1}; }

// The first 1,000 bytes of a message of 8,000 bytes.
Frame first_fragment(const FakePeer& peer) {
  MessageHeader message = numbered_put(1);
  message.link_word = message_bytes;
  std::vector<std::byte> body(sizeof message + 1000);
  std::memcpy(body.data(), &message, sizeof message);
  FrameHeader header{};
  header.type = FrameType::data;
  header.flags = frame_first;
  header.sequence = 1;
  return peer.connected_frame(header, body);
}

// A table for few peers, and enough time to check each of them.
class ReliableFullTable : public testing::Test {
 protected:
  static constexpr uint32_t places = 8;
  static constexpr uint64_t long_enough_ns = 60'000'000'000;

  static ReliableSettings settings() {
    ReliableSettings settings;
    settings.most_connections = places;
    return settings;
  }
  ReliableFullTable() {
    for (uint32_t i = 0; i < places; ++i) {
      peers_.emplace_back(network_, gone_id(i), target_id);
      EXPECT_TRUE(peers_[i].connect(target_));
      say_something(i, 1);
    }
  }
  void say_something(uint32_t peer, uint32_t sequence) {
    peers_[peer].inject(peers_[peer].message_frame(sequence, numbered_put(peer), {}));
    for (unsigned i = 0; i < 4; ++i) target_.poll();
  }
  bool newcomer_connects(uint32_t number) {
    FakePeer newcomer(network_, gone_id(number), target_id);
    return newcomer.connect(target_);
  }

  MemoryNetwork network_;
  MemoryProcess target_{network_, target_id, settings()};
  std::vector<FakePeer> peers_;
};

TEST_F(ReliableFullTable, PeersThatWereJustHeardKeepTheirPlaces) {
  EXPECT_FALSE(newcomer_connects(places));
  EXPECT_TRUE(target_.failed.empty());
  EXPECT_EQ(target_.transport().connections(), places);
}

TEST_F(ReliableFullTable, PeersThatAreSilentForLongGiveTheirPlacesToNewcomers) {
  virtual_now_ns += long_enough_ns;
  say_something(3, 2);
  for (uint32_t i = 0; i + 1 < places; ++i) ASSERT_TRUE(newcomer_connects(places + i)) << i;
  EXPECT_FALSE(newcomer_connects(3 * places)) << "now every peer has sent a frame recently";
  EXPECT_EQ(target_.failed.size(), places - 1);
  EXPECT_EQ(target_.transport().connections(), places);
  target_.messages.clear();
  say_something(3, 3);
  EXPECT_EQ(target_.messages.size(), 1u) << "it was not given up";
  virtual_now_ns += long_enough_ns;
  EXPECT_TRUE(newcomer_connects(0)) << "a peer that was given up may connect again";
}

TEST_F(ReliableFullTable, APeerThatHasLeftMakesRoomForAnybody) {
  FrameHeader goodbye{};
  goodbye.type = FrameType::goodbye;
  for (uint32_t i = 0; i < 2; ++i) {
    peers_[i].inject(peers_[i].connected_frame(goodbye, {}));
    target_.poll();
  }
  EXPECT_TRUE(newcomer_connects(places));
  EXPECT_NE(target_.connect(gone_id(places + 1)), nullptr);
  EXPECT_EQ(target_.connect(gone_id(places + 2)), nullptr);
}

// A node that opens as many connections as it may.
class ReliableNodeQuota : public testing::Test {
 protected:
  static constexpr uint32_t most = 4;
  static constexpr uint64_t long_enough_ns = 60'000'000'000;

  static ReliableSettings settings() {
    ReliableSettings settings;
    settings.most_connections = 8 * most;
    settings.most_of_node = most;
    return settings;
  }
  ReliableNodeQuota() {
    for (uint32_t i = 0; i < most; ++i) {
      peers_.emplace_back(network_, gone_id(i), target_id);
      EXPECT_TRUE(peers_[i].connect(target_));
    }
  }
  bool connects(ProcessId id) { return FakePeer(network_, id, target_id).connect(target_); }

  MemoryNetwork network_;
  MemoryProcess target_{network_, target_id, settings()};
  std::vector<FakePeer> peers_;
};

TEST_F(ReliableNodeQuota, ItsProcessesLeavePlacesToOtherNodes) {
  EXPECT_FALSE(connects(gone_id(most)));
  EXPECT_EQ(target_.transport().counters().handshakes_refused, 1u);
  EXPECT_EQ(target_.transport().connections(), most);
  EXPECT_TRUE(connects({10, 1}));
  EXPECT_TRUE(target_.failed.empty());
}

TEST_F(ReliableNodeQuota, OneThatHasLeftCountsNoMore) {
  FrameHeader goodbye{};
  goodbye.type = FrameType::goodbye;
  for (uint32_t i = 0; i < 3 * most; ++i) {
    peers_[i].inject(peers_[i].connected_frame(goodbye, {}));
    target_.poll();
    peers_.emplace_back(network_, gone_id(most + i), target_id);
    ASSERT_TRUE(peers_.back().connect(target_)) << i;
  }
  EXPECT_FALSE(connects(gone_id(0)));
}

TEST_F(ReliableNodeQuota, OneThatStartsAnewTakesNoFurtherPlace) {
  FakePeer again(network_, gone_id(0), target_id, 4712);
  EXPECT_TRUE(again.connect(target_));
  EXPECT_FALSE(connects(gone_id(most)));
}

TEST_F(ReliableNodeQuota, SilentOnesOfTheNodeGiveTheirPlacesAndOthersDoNot) {
  EXPECT_TRUE(connects({10, 1}));
  virtual_now_ns += long_enough_ns;
  for (uint32_t i = 0; i < most; ++i) ASSERT_TRUE(connects(gone_id(most + i))) << i;
  EXPECT_EQ(target_.failed.size(), most);
  for (const ProcessId failed : target_.failed) EXPECT_EQ(failed.nid, gone_id(0).nid);
}

TEST_F(ReliableNodeQuota, DoesNotCountAgainstOnesOwnCalls) {
  EXPECT_NE(target_.connect(gone_id(most)), nullptr);
}

class ReliableAbandoned : public testing::Test {
 protected:
  ReliableAbandoned() {
    // Nothing is stored for peers that are gone.
    network_.script = [this](const LinkAddress&, const LinkAddress& to, const Frame& frame) {
      ProcessId id;
      std::memcpy(&id, to.bytes.data(), sizeof id);
      const FrameType type = header_of(frame).type;
      if (id.nid == gone_id(0).nid && type != FrameType::challenge && type != FrameType::accept) {
        if (type == FrameType::probe) ++probes_;
        return std::vector<MemoryNetwork::Copy>{};
      }
      return std::vector<MemoryNetwork::Copy>{{frame, 0}};
    };
  }
  FakePeer connected(uint32_t number) {
    FakePeer peer(network_, gone_id(number), target_id);
    EXPECT_TRUE(peer.connect(target_));
    return peer;
  }
  void abandon_messages(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const FakePeer peer = connected(i);
      peer_frame(peer, first_fragment(peer));
    }
  }
  void peer_frame(FakePeer peer, Frame frame) {
    peer.inject(std::move(frame));
    target_.poll();
  }

  MemoryNetwork network_;
  MemoryProcess target_{network_, target_id};
  std::vector<MemoryProcess*> all_{&target_};
  uint64_t probes_ = 0;
};

TEST_F(ReliableAbandoned, APeerWithNothingUnfinishedIsNotProbed) {
  const FakePeer peer = connected(0);
  peer_frame(peer, peer.message_frame(1, numbered_put(1), std::vector<std::byte>(500)));
  run_for(all_, 2 * peer_timeout_ns);
  EXPECT_EQ(target_.messages.size(), 1u);
  EXPECT_TRUE(target_.failed.empty());
  EXPECT_EQ(probes_, 0u);
}

// More messages than there are buffers.
TEST_F(ReliableAbandoned, HalfMessagesOfPeersThatAreGoneDoNotExcludeOthers) {
  abandon_messages(700);
  MemoryProcess sender(network_, {2, 2});
  all_.push_back(&sender);
  send_surely(sender, sender.connect(target_id), all_, numbered_put(7),
              numbered_bytes(7, message_bytes));
  ASSERT_TRUE(run_until(
      all_, [&] { return !target_.messages.empty(); }, peer_timeout_ns / 2));
  EXPECT_EQ(target_.messages.front().payload, numbered_bytes(7, message_bytes));
  EXPECT_TRUE(sender.failed.empty());
  EXPECT_TRUE(run_until(
      all_, [&] { return target_.transport().frame_memory_used() == 0; }, peer_timeout_ns));
}

// The first frame of the second message arrived early. When its turn comes, there is no buffer.
TEST_F(ReliableAbandoned, AnEarlyFrameWithoutRoomIsTriedAgain) {
  ReliableSettings settings;
  settings.memory_bytes = 1 << 20;
  MemoryProcess small(network_, {3, 3}, settings);
  MemoryProcess sender(network_, {2, 2});
  const std::vector<MemoryProcess*> both{&small, &sender};
  for (uint32_t i = 0; i < 20; ++i) {
    FakePeer peer(network_, gone_id(i), {3, 3});
    ASSERT_TRUE(peer.connect(small));
    peer.inject(first_fragment(peer));
    run_for(both, 100'000'000);
  }
  Link* const link = sender.connect({3, 3});
  for (uint64_t i = 0; i < 10; ++i)
    send_surely(sender, link, both, numbered_put(i), numbered_bytes(i, message_bytes));
  ASSERT_TRUE(run_until(
      both, [&] { return small.messages.size() == 10; }, peer_timeout_ns));
  for (uint64_t i = 0; i < 10; ++i)
    EXPECT_EQ(small.messages[i].payload, numbered_bytes(i, message_bytes));
}

TEST_F(ReliableAbandoned, EarlyFramesOfOnePeerLeaveRoomForThoseOfOthers) {
  ReliableSettings settings;
  settings.memory_bytes = 1 << 20;
  MemoryProcess small(network_, {3, 3}, settings, 1472, 1 << 20);
  const auto send_early = [&](uint32_t number, uint32_t count) {
    FakePeer peer(network_, gone_id(number), {3, 3});
    EXPECT_TRUE(peer.connect(small));
    const uint64_t before = small.transport().frame_memory_used();
    for (uint32_t i = 0; i < count; ++i) {
      peer.inject(peer.message_frame(2 + i, numbered_put(i), std::vector<std::byte>(1300)));
      small.poll();
    }
    return small.transport().frame_memory_used() - before;
  };
  const uint64_t first = send_early(0, 500);
  EXPECT_GT(first, 64u * 1024);
  EXPECT_GT(send_early(1, 500), first / 4);
}

}  // namespace
}  // namespace lintel::test

// Frames that no correct peer sends: no crash, no wrong delivery, and all are counted.
#include <cstring>

#include "unit/reliable_test_support.h"

namespace lintel::test {
namespace {

constexpr ProcessId target_id{0x0a000001, 10};
constexpr ProcessId fake_id{0x0a000002, 20};

class HostileFrames : public testing::Test {
 protected:
  HostileFrames() : target_(network_, target_id), fake_(network_, fake_id, target_id) {
    EXPECT_TRUE(fake_.connect(target_));
    fake_.inject(fake_.message_frame(1, numbered_put(1), numbered_bytes(1, 100)));
    target_.poll();
    EXPECT_EQ(target_.messages.size(), 1u);
    target_.messages.clear();
  }
  // The script refers to objects of the test, which no longer exist when the processes send
  // goodbye.
  void TearDown() override { network_.script = nullptr; }
  void expect_alive() {
    fake_.inject(fake_.message_frame(2, numbered_put(2), {}));
    for (unsigned i = 0; i < 4; ++i) target_.poll();
    ASSERT_EQ(target_.messages.size(), 1u);
    EXPECT_EQ(target_.messages[0].header.match_bits, 2u);
    EXPECT_TRUE(target_.failed.empty());
  }
  ReliableCounters counters() { return target_.transport().counters(); }

  MemoryNetwork network_;
  MemoryProcess target_;
  FakePeer fake_;
};

// Any flipped bit of a valid frame must be detected.
TEST_F(HostileFrames, EveryFlippedBitIsNoticed) {
  const Frame good = fake_.message_frame(2, numbered_put(2), numbered_bytes(2, 64));
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    Frame frame = good;
    frame[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    fake_.inject(std::move(frame));
    target_.poll();
    ASSERT_TRUE(target_.messages.empty()) << bit;
  }
  expect_alive();
}

// Without an agreement nobody leaves out a check.
TEST_F(HostileFrames, UncheckedPayloadsAreRefused) {
  FrameHeader header{};
  header.type = FrameType::data;
  header.flags = frame_whole | frame_unchecked;
  header.sequence = 2;
  const MessageHeader message = numbered_put(666);
  std::vector<std::byte> body(sizeof message);
  std::memcpy(body.data(), &message, sizeof message);
  fake_.inject(fake_.connected_frame(header, body));
  target_.poll();
  EXPECT_TRUE(target_.messages.empty());
  EXPECT_EQ(counters().damaged, 1u);
  expect_alive();
}

TEST_F(HostileFrames, SlotsThatHoldNoFrameOpenNothing) {
  constexpr ProcessId other_id{0x0a000004, 21};
  FakePeer other(network_, other_id, target_id);
  HandshakeBody body = other.body();
  for (const uint32_t slot_bytes :
       {1u, body.mtu - 1, PacketLink::largest_mtu + 1, UINT32_MAX, body.mtu}) {
    body.slot_bytes = slot_bytes;
    body.cookie = 0;
    other.call(FrameType::hello, body);
    target_.poll();
    HandshakeBody answer{};
    ASSERT_TRUE(other.take_answer(FrameType::challenge, answer));
    body.cookie = answer.cookie;
    other.call(FrameType::connect, body);
    target_.poll();
    EXPECT_EQ(other.take_answer(FrameType::accept, answer), slot_bytes == body.mtu) << slot_bytes;
  }
}

TEST_F(HostileFrames, FramesFromElsewhereAreNotOfTheConnection) {
  Frame frame = fake_.message_frame(2, numbered_put(666), {});
  network_.inject(address_of({0x0a000003, 20}), address_of(target_id), frame);
  target_.poll();
  EXPECT_TRUE(target_.messages.empty());
  EXPECT_EQ(counters().strangers, 1u);
  expect_alive();
}

TEST_F(HostileFrames, AcknowledgementsOfTheFutureAreIgnored) {
  FrameHeader header{};
  header.type = FrameType::ack;
  for (const uint32_t acknowledged : {5u, 1000u, 0x7fffffffu}) {
    header.acknowledged = acknowledged;
    header.selective = ~uint64_t{0};
    fake_.inject(fake_.connected_frame(header, {}));
    target_.poll();
  }
  EXPECT_EQ(counters().malformed, 3u);
  // Too many words, and half a word.
  header.acknowledged = 1;
  fake_.inject(fake_.connected_frame(header, std::vector<std::byte>(33 * 8)));
  fake_.inject(fake_.connected_frame(header, std::vector<std::byte>(12)));
  target_.poll();
  EXPECT_EQ(counters().malformed, 5u);
  expect_alive();
}

TEST_F(HostileFrames, FramesFarAheadAreDropped) {
  for (const uint32_t sequence : {2u + selective_reach, 0x7fffffffu, 0x80000000u}) {
    fake_.inject(fake_.message_frame(sequence, numbered_put(9), {}));
    target_.poll();
  }
  EXPECT_TRUE(target_.messages.empty());
  EXPECT_EQ(target_.transport().frame_memory_used(), 0u);
  expect_alive();
}

// A peer that never sends a missing frame cannot fill the memory with later frames.
TEST_F(HostileFrames, EarlyFramesAreBounded) {
  for (uint32_t i = 0; i < 2000; ++i) {
    fake_.inject(fake_.message_frame(3 + i, numbered_put(i), numbered_bytes(i, 1300)));
    target_.poll();
  }
  EXPECT_LE(target_.transport().frame_memory_used(), 2 * 256u * 1024);
  EXPECT_GT(counters().dropped_for_room, 0u);
}

TEST_F(HostileFrames, ResetsMustNameTheConnection) {
  ResetBody body{12345, fake_id.nid, fake_id.pid, {}};
  FrameHeader header{};
  header.type = FrameType::reset;
  fake_.inject(FakePeer::frame_of(header, body, handshake_seed));
  target_.poll();
  EXPECT_EQ(counters().resets_received, 0u);
  expect_alive();
}

// An attacker has recorded the frames of a first connection and repeats them.
TEST_F(HostileFrames, AReplayedConnectDoesNotEndTheConnectionThatCameAfter) {
  FakePeer again(network_, fake_id, target_id, 4712);
  ASSERT_TRUE(again.connect(target_));
  EXPECT_EQ(target_.failed.size(), 1u) << "the first connection";
  fake_.repeat_connect();
  target_.poll();
  EXPECT_EQ(target_.failed.size(), 1u);
  again.inject(again.message_frame(1, numbered_put(2), {}));
  for (unsigned i = 0; i < 4; ++i) target_.poll();
  ASSERT_EQ(target_.messages.size(), 1u);
}

// Nor does it reopen an ended connection that had no successor.
TEST_F(HostileFrames, AReplayedConnectDoesNotOpenAConnectionThatHasEnded) {
  FrameHeader goodbye{};
  goodbye.type = FrameType::goodbye;
  fake_.inject(fake_.connected_frame(goodbye, {}));
  target_.poll();
  EXPECT_EQ(target_.failed.size(), 1u);
  fake_.repeat_connect();
  target_.poll();
  EXPECT_EQ(counters().connections_opened, 1u);
}

// If the accept was lost, the caller repeats the same connect.
TEST_F(HostileFrames, ARepeatedConnectIsAcceptedAgain) {
  static_cast<void>(network_.take(address_of(fake_id)));
  fake_.repeat_connect();
  target_.poll();
  HandshakeBody answer{};
  EXPECT_TRUE(fake_.take_answer(FrameType::accept, answer));
  EXPECT_EQ(answer.number, fake_.peer_number());
  expect_alive();
}

// The sources of such frames may be forged, so the answers go to a host that has sent nothing.
TEST_F(HostileFrames, AHostGetsFewAnswersToFramesThatProveNothing) {
  constexpr uint32_t victim = 0x0b000001;
  constexpr uint64_t refill_ns = 1'000'000'000;
  uint64_t answered = 0;
  network_.script = [&](const LinkAddress&, const LinkAddress& to,
                        const Frame&) -> std::vector<MemoryNetwork::Copy> {
    // Counts only answers to others: the connected peer gets an acknowledgement.
    if (!(to == address_of(fake_id))) ++answered;
    return {};
  };
  const auto answers = [&](uint32_t nid, uint64_t frames) {
    answered = 0;
    for (uint32_t i = 0; i < frames; ++i) {
      FakePeer caller(network_, {nid, 1 + i % 500}, target_id);
      FrameHeader data{};
      data.type = FrameType::data;
      if (i % 3 == 0)
        caller.inject(caller.connected_frame(data, std::vector<std::byte>(sizeof(ResetBody))));
      else
        caller.call(FrameType::hello, caller.body(), i % 3 == 1 ? frame_version : 3);
      target_.poll();
    }
    return answered;
  };
  virtual_now_ns += refill_ns;
  EXPECT_EQ(answers(victim, 3 * AnswerLimit::at_once), AnswerLimit::at_once);
  EXPECT_EQ(counters().unanswered, 2 * AnswerLimit::at_once);
  // By chance, two hosts may have the same limit.
  unsigned others = 0;
  for (uint32_t host = 1; host <= 16; ++host) others += answers(victim + host, 1) == 1 ? 1 : 0;
  EXPECT_GE(others, 14u);
  virtual_now_ns += refill_ns / 100;
  EXPECT_EQ(answers(victim, 500), AnswerLimit::per_second / 100);
  virtual_now_ns += refill_ns;
  EXPECT_EQ(answers(victim, 2 * AnswerLimit::at_once), AnswerLimit::at_once);
}

// The answer to a stranger's frame is not longer than that frame, and answers are not answered.
TEST_F(HostileFrames, StrangersGetNoMoreThanTheySend) {
  uint64_t answered = 0;
  network_.script = [&](const LinkAddress&, const LinkAddress&,
                        const Frame& frame) -> std::vector<MemoryNetwork::Copy> {
    answered += frame.size();
    return {};
  };
  for (unsigned type = 0; type <= frame_types; ++type) {
    for (size_t length = 32; length < 200; length += 8) {
      Frame frame(length);
      FrameHeader header{};
      header.version = frame_version;
      header.type = static_cast<FrameType>(type);
      header.connection = 0xabcdef0000000000 + type;
      std::memcpy(frame.data(), &header, sizeof header);
      answered = 0;
      fake_.inject(frame);
      target_.poll();
      EXPECT_LE(answered, length) << type;
      if (header.type == FrameType::ack || header.type == FrameType::reset) {
        EXPECT_EQ(answered, 0u);
      }
    }
  }
}

}  // namespace
}  // namespace lintel::test

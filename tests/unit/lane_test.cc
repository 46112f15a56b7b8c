// The lane: messages arrive in order and once, full lanes are reported, and random contents are
// harmless.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "lane/lane_consumer.h"
#include "lane/lane_producer.h"
#include "util/guarded_memory.h"

namespace lintel {
namespace {

constexpr LaneGeometry small_lane{31, 16 * 1024};

MessageHeader header_of(uint64_t number) {
  MessageHeader header{};
  header.kind = MessageKind::put;
  header.match_bits = number;
  header.hdr_data = ~number;
  header.cookie = static_cast<uint32_t>(number * 7);
  return header;
}

// Bytes that depend on the number of the message and on their position.
std::vector<std::byte> payload_of(uint64_t number, size_t length) {
  std::vector<std::byte> bytes(length);
  for (size_t i = 0; i < length; ++i)
    bytes[i] = static_cast<std::byte>(number * 131 + i * 17 + (i >> 8));
  return bytes;
}

// A lane with inaccessible memory right before and behind it.
class LaneMemory {
 public:
  explicit LaneMemory(const LaneGeometry& geometry)
      : geometry_(geometry), bytes_((geometry.bytes() + 4095) & ~uint64_t{4095}) {
    void* all =
        mmap(nullptr, bytes_ + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(all, MAP_FAILED);
    base_ = static_cast<std::byte*>(all);
    EXPECT_EQ(mprotect(base_ + 4096, bytes_, PROT_READ | PROT_WRITE), 0);
  }
  ~LaneMemory() { munmap(base_, bytes_ + 8192); }
  LaneMemory(const LaneMemory&) = delete;
  LaneMemory& operator=(const LaneMemory&) = delete;

  // The lane ends at the end of the accessible memory.
  [[nodiscard]] LaneControl* control() const {
    return reinterpret_cast<LaneControl*>(base_ + 4096 + (bytes_ - geometry_.bytes()));
  }
  [[nodiscard]] std::byte* bytes() const { return reinterpret_cast<std::byte*>(control()); }

 private:
  LaneGeometry geometry_;
  uint64_t bytes_;
  std::byte* base_ = nullptr;
};

class LaneTest : public ::testing::Test {
 protected:
  explicit LaneTest(LaneGeometry geometry = small_lane) : memory_(geometry) {
    install_fault_handler();
    EXPECT_TRUE(producer_.attach(memory_.control(), geometry));
    consumer_.attach(memory_.control(), geometry);
  }

  SendStatus push(uint64_t number, size_t length) {
    std::vector<std::byte> payload = payload_of(number, length);
    const Piece piece{payload.data(), payload.size()};
    return producer_.push(header_of(number), &piece, 1);
  }

  // Receives one message and checks it.
  void expect_next(uint64_t number, size_t length) {
    InboundMessage message;
    bool malformed = false;
    ASSERT_EQ(consumer_.peek(&message, 1, malformed), 1u) << "message " << number;
    ASSERT_FALSE(malformed);
    check(message, number, length);
    static_cast<void>(consumer_.release(1));
  }

  static void check(const InboundMessage& message, uint64_t number, size_t length) {
    ASSERT_EQ(message.header.match_bits, number);
    ASSERT_EQ(message.header.hdr_data, ~number);
    ASSERT_EQ(message.header.cookie, static_cast<uint32_t>(number * 7));
    ASSERT_EQ(message.header.kind, MessageKind::put);
    ASSERT_EQ(message.payload_length, length);
    const std::vector<std::byte> expected = payload_of(number, length);
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), message.payload))
        << "message " << number;
  }

  bool empty() { return !consumer_.ready(); }
  void exchange_at_random();
  void exchange_acknowledgements();

  LaneMemory memory_;
  LaneProducer producer_;
  LaneConsumer consumer_;
};

TEST_F(LaneTest, ZeroedMemoryIsEmpty) {
  EXPECT_FALSE(consumer_.ready());
  InboundMessage message;
  bool malformed = false;
  EXPECT_EQ(consumer_.peek(&message, 1, malformed), 0u);
  EXPECT_FALSE(malformed);
}

TEST_F(LaneTest, CarriesEveryPayloadSize) {
  for (size_t length = 0; length <= lane_max_payload_bytes; ++length) {
    ASSERT_EQ(push(length, length), SendStatus::sent) << length;
    expect_next(length, length);
    if (HasFatalFailure()) return;
  }
}

TEST_F(LaneTest, PublishesRoomInTheByteRingUnasked) {
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(push(i, 4096), SendStatus::sent) << i;
    expect_next(i, 4096);
  }
}

TEST_F(LaneTest, AnEightByteMessageTouchesOneCacheLine) {
  std::vector<std::byte> before(memory_.bytes(), memory_.bytes() + small_lane.bytes());
  ASSERT_EQ(push(1, 8), SendStatus::sent);
  const auto* cell = reinterpret_cast<const std::byte*>(cells_of(memory_.control()));
  const size_t first = static_cast<size_t>(cell - memory_.bytes());
  for (size_t i = 0; i < before.size(); ++i) {
    if (i >= first && i < first + 64) continue;
    ASSERT_EQ(before[i], memory_.bytes()[i]) << i;
  }
  EXPECT_NE(std::memcmp(&before[first], cell, 64), 0);
}

// A sink that keeps the puts that come in place.
class PutSink final : public MessageSink {
 public:
  void* on_new_link(Link&) noexcept override { return nullptr; }
  void on_messages(Link&, const InboundMessage*, unsigned count) noexcept override {
    others += count;
  }
  bool on_put(Link&, const MessageCell& cell, uint64_t first_word,
              uint32_t length) noexcept override {
    puts.push_back(copy_of(cell, first_word, length));
    return succeeds;
  }
  void on_peer_failed(Link&) noexcept override {}
  void on_remote_done(Link&, uint32_t, RemoteResult) noexcept override {}
  bool may_access(Link&, const RemoteMemory&, bool) noexcept override { return false; }

  std::vector<InboundMessage> puts;
  unsigned others = 0;
  bool succeeds = true;
};

using Taken = LaneConsumer::Taken;

// Through all laps of the cells, and with acknowledgements until their line is full.
TEST_F(LaneTest, PutsThatAreWrittenAndReadInPlaceAreAcknowledged) {
  PutSink sink;
  Link link;
  LaneMemory back(small_lane);
  LaneProducer back_producer;
  ASSERT_TRUE(back_producer.attach(back.control(), small_lane));
  constexpr unsigned asks = MessageHeader::modes_of(PTL_INT8_T, PTL_CT_ACK_REQ);
  const auto deliver = [&](LaneAckWriter* acks) {
    return consumer_.deliver_put(sink, link, [acks] { return acks; });
  };
  for (uint32_t i = 1; i <= 3 * small_lane.cells; ++i) {
    sink.succeeds = i % 5 != 0;
    LaneCell* const cell = producer_.next_cell();
    ASSERT_NE(cell, nullptr) << i;
    cell->header.set_rest(i, i + 1, 3, 8, i + 2, i + 3, i + 4);
    std::memcpy(cell->payload, &i, sizeof i);
    producer_.publish(*cell, MessageHeader::first_word(MessageKind::put, 1, PTL_MIN, asks), 8);
    ASSERT_TRUE(consumer_.message_waits());
    const bool room = back_producer.acks().has_room();
    EXPECT_EQ(room, i <= lane_ack_places + lane_ack_places / 4) << i;
    if (!room) {
      EXPECT_EQ(deliver(&back_producer.acks()), Taken::none);
      break;
    }
    EXPECT_EQ(deliver(nullptr), Taken::none) << "it asks for one";
    EXPECT_EQ(deliver(&back_producer.acks()), sink.succeeds ? Taken::acknowledged : Taken::put);
    static_cast<void>(consumer_.release_taken());
    ASSERT_EQ(sink.puts.size(), i);
    const MessageHeader& header = sink.puts.back().header;
    EXPECT_EQ(header.kind, MessageKind::put);
    EXPECT_EQ(header.interface_slot(), 1u);
    EXPECT_EQ(header.requested_ack(), PTL_CT_ACK_REQ);
    EXPECT_EQ(header.initiator_rank, i);
    EXPECT_EQ(header.pt_index, 3u);
    EXPECT_EQ(header.length(), 8u);
    EXPECT_EQ(header.match_bits, i + 2);
    EXPECT_EQ(header.remote_offset, i + 3);
    EXPECT_EQ(header.hdr_data, i + 4);
    EXPECT_EQ(sink.puts.back().payload_length, 8u);
  }
  back_producer.acks().publish();
  EXPECT_EQ(back.control()->acks.sent.load(), lane_ack_places);
  EXPECT_EQ(sink.others, 0u);
}

TEST_F(LaneTest, OtherMessagesAreNotTakenInPlace) {
  PutSink sink;
  Link link;
  MessageHeader header = header_of(1);
  for (const auto& change : {+[](MessageHeader& h) { h.kind = MessageKind::get; },
                             +[](MessageHeader& h) { h.flags = flag_remote_memory; },
                             +[](MessageHeader& h) { h.flags = 0x80; }}) {
    MessageHeader other = header;
    change(other);
    ASSERT_EQ(producer_.push(other, nullptr, 0), SendStatus::sent);
    EXPECT_EQ(consumer_.deliver_put(sink, link, [] { return nullptr; }), Taken::none);
    InboundMessage message;
    bool malformed = false;
    const unsigned count = consumer_.peek(&message, 1, malformed);
    EXPECT_EQ(malformed, count == 0);
    static_cast<void>(consumer_.release(count));
  }
}

TEST_F(LaneTest, ALongPutIsNotTakenInPlace) {
  PutSink sink;
  Link link;
  const auto no_acks = [] { return nullptr; };
  ASSERT_EQ(push(1, lane_inline_bytes + 1), SendStatus::sent);
  EXPECT_EQ(consumer_.deliver_put(sink, link, no_acks), Taken::none);
  expect_next(1, lane_inline_bytes + 1);
  ASSERT_EQ(push(2, lane_inline_bytes), SendStatus::sent);
  EXPECT_EQ(consumer_.deliver_put(sink, link, no_acks), Taken::put);
}

TEST_F(LaneTest, GathersPieces) {
  for (const size_t length : {8u, 16u, 50u, 80u, 81u, 1000u, 8192u}) {
    std::vector<std::byte> payload = payload_of(length, length);
    const size_t a = length / 3;
    const size_t b = length / 2;
    const Piece pieces[] = {{payload.data(), a},
                            {nullptr, 0},
                            {payload.data() + a, b - a},
                            {payload.data() + b, length - b}};
    ASSERT_EQ(producer_.push(header_of(length), pieces, 4), SendStatus::sent);
    expect_next(length, length);
  }
}

// The rest of the byte ring gets memory when it is first needed, or never.
TEST(LaneOfTwoParts, UsesTheSecondOnceItMay) {
  constexpr LaneGeometry geometry{254, 64 * 1024};
  constexpr uint32_t first_part = 16 * 1024;
  constexpr uint32_t length = 5000;
  for (const bool more : {true, false}) {
    LaneMemory memory(geometry);
    LaneProducer producer;
    LaneConsumer consumer;
    ASSERT_TRUE(producer.attach(memory.control(), geometry, first_part));
    consumer.attach(memory.control(), geometry);
    const std::byte* const data =
        memory.bytes() + sizeof(LaneControl) + geometry.cells * sizeof(LaneCell);
    const std::byte* last = data;
    unsigned asked = 0;
    for (uint64_t number = 0; number < 99; ++number) {
      std::vector<std::byte> payload = payload_of(number, length);
      const Piece piece{payload.data(), payload.size()};
      SendStatus status = producer.push(header_of(number), &piece, 1);
      if (producer.wants_data()) {
        ASSERT_EQ(status, SendStatus::queue_full);
        ++asked;
        producer.extend_data(more);
        status = producer.push(header_of(number), &piece, 1);
      }
      ASSERT_EQ(status, SendStatus::sent) << number;
      if (number % 3 != 2) continue;  // three messages fill the first part
      for (uint64_t taken = number - 2; taken <= number; ++taken) {
        InboundMessage message;
        bool malformed = false;
        ASSERT_EQ(consumer.peek(&message, 1, malformed), 1u);
        ASSERT_EQ(message.header.match_bits, taken);
        const std::vector<std::byte> expected = payload_of(taken, length);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), message.payload)) << taken;
        last = std::max(last, message.payload + length);
        static_cast<void>(consumer.release(1));
      }
      consumer.publish_room();
    }
    EXPECT_EQ(asked, 1u);
    EXPECT_EQ(last - data > first_part, more);
    EXPECT_FALSE(consumer.ready());
  }
}

TEST_F(LaneTest, SaysWhenItIsFullAndWhenThereIsRoomAgain) {
  for (uint64_t i = 0; i < small_lane.cells; ++i) ASSERT_EQ(push(i, 8), SendStatus::sent);
  EXPECT_EQ(push(99, 8), SendStatus::queue_full);
  EXPECT_FALSE(producer_.room_appeared());

  // The room of one message is not published unless the producer requests it, which it has just
  // done.
  expect_next(0, 8);
  EXPECT_FALSE(producer_.room_appeared());
  EXPECT_TRUE(consumer_.release_on_request());
  EXPECT_TRUE(producer_.room_appeared());
  EXPECT_EQ(push(small_lane.cells, 8), SendStatus::sent);
  EXPECT_EQ(push(99, 8), SendStatus::queue_full);
  for (uint64_t i = 1; i <= small_lane.cells; ++i) expect_next(i, 8);
  EXPECT_TRUE(empty());
}

TEST_F(LaneTest, PublishesRoomUnaskedAfterAQuarter) {
  uint32_t published = 0;
  for (uint64_t i = 0; i < 10 * small_lane.cells; ++i) {
    ASSERT_EQ(push(i, 8), SendStatus::sent);
    InboundMessage message;
    bool malformed = false;
    ASSERT_EQ(consumer_.peek(&message, 1, malformed), 1u);
    if (consumer_.release(1)) ++published;
  }
  EXPECT_EQ(published, 10 * small_lane.cells / (small_lane.cells / 4));
  EXPECT_FALSE(consumer_.release_on_request()) << "the producer requested no room";
}

TEST_F(LaneTest, SleepingProducerIsSeenOnce) {
  EXPECT_FALSE(consumer_.producer_sleeps());
  producer_.control().sleeps_for_room.store(1);
  ASSERT_EQ(push(1, 8), SendStatus::sent);
  expect_next(1, 8);
  EXPECT_TRUE(consumer_.release_on_request()) << "a sleeping producer requests room";
  EXPECT_TRUE(consumer_.producer_sleeps());
  EXPECT_FALSE(consumer_.producer_sleeps());
}

TEST_F(LaneTest, LargestPayloadsAlwaysFitAnEmptyLane) {
  // Tests every position in the byte ring.
  uint64_t number = 0;
  for (size_t shift = 0; shift < 300; ++shift) {
    ASSERT_EQ(push(number, 81 + 64 * (shift % 7)), SendStatus::sent);
    expect_next(number++, 81 + 64 * (shift % 7));
    consumer_.publish_room();
    ASSERT_EQ(push(number, lane_max_payload_bytes), SendStatus::sent) << shift;
    expect_next(number++, lane_max_payload_bytes);
    consumer_.publish_room();
    if (HasFatalFailure()) return;
  }
}

// Compared with a model: random sizes, batches and times of publishing, while the lane wraps around
// many times.
void LaneTest::exchange_at_random() {
  std::mt19937 random(4711);
  std::deque<std::pair<uint64_t, size_t>> waiting;
  uint64_t number = 0;
  bool full_seen = false;
  for (int step = 0; step < 30000; ++step) {
    if (random() % 2 == 0) {
      const size_t length = random() % 3 == 0 ? random() % 8193 : random() % 100;
      const SendStatus status = push(number, length);
      if (status == SendStatus::sent)
        waiting.emplace_back(number++, length);
      else
        full_seen = true;
      continue;
    }
    InboundMessage messages[7];
    bool malformed = false;
    const unsigned wanted = 1 + random() % 7;
    const unsigned count = consumer_.peek(messages, wanted, malformed);
    ASSERT_FALSE(malformed);
    ASSERT_EQ(count, std::min<size_t>(wanted, waiting.size()));
    for (unsigned i = 0; i < count; ++i) {
      check(messages[i], waiting.front().first, waiting.front().second);
      if (HasFatalFailure()) return;
      waiting.pop_front();
    }
    static_cast<void>(consumer_.release(count));
    if (random() % 4 == 0) static_cast<void>(consumer_.release_on_request());
  }
  EXPECT_TRUE(full_seen);
  EXPECT_GT(number, 40 * small_lane.cells);
}

TEST_F(LaneTest, RandomTrafficAgainstAModel) { exchange_at_random(); }

// The counters of a lane wrap after 2^32 messages.
TEST_F(LaneTest, CountersWrap) {
  for (const uint32_t before_wrap : {1u, 7u, small_lane.cells, 3000u}) {
    const LaneMemory memory(small_lane);
    LaneControl& control = *memory.control();
    for (std::atomic<uint32_t>* counter :
         {&control.released, &control.acks_taken, &control.acks.sent})
      counter->store(0 - before_wrap);
    ASSERT_TRUE(producer_.attach(&control, small_lane));
    consumer_.attach(&control, small_lane);
    exchange_acknowledgements();
    exchange_at_random();
    if (HasFatalFailure()) return;
    EXPECT_LT(control.released.load(), 0u - before_wrap);
  }
}

TEST_F(LaneTest, LapCounterWraps) {
  // The lane wraps around more often than 16 bits can count.
  constexpr LaneGeometry tiny{4, 16 * 1024};
  const LaneMemory memory(tiny);
  LaneProducer producer;
  LaneConsumer consumer;
  ASSERT_TRUE(producer.attach(memory.control(), tiny));
  consumer.attach(memory.control(), tiny);
  for (uint64_t i = 0; i < 4 * 0x10000 * 2 + 10; ++i) {
    ASSERT_EQ(producer.push(header_of(i), nullptr, 0), SendStatus::sent);
    InboundMessage message;
    bool malformed = false;
    ASSERT_EQ(consumer.peek(&message, 1, malformed), 1u) << i;
    ASSERT_EQ(message.header.match_bits, i);
    static_cast<void>(consumer.release(1));
    ASSERT_FALSE(consumer.ready()) << i;
  }
}

TEST_F(LaneTest, InaccessiblePayloadSendsNothing) {
  void* gone = mmap(nullptr, 16384, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  for (const size_t length : {1u, 8u, 80u, 81u, 4096u}) {
    const Piece piece{static_cast<std::byte*>(gone), length};
    EXPECT_EQ(producer_.push(header_of(1), &piece, 1), SendStatus::inaccessible);
    EXPECT_TRUE(empty());
  }
  for (uint64_t i = 0; i < 3 * small_lane.cells; ++i) {
    ASSERT_EQ(push(i, 100), SendStatus::sent);
    expect_next(i, 100);
  }
  munmap(gone, 16384);
}

TEST_F(LaneTest, PayloadLengthBeyondTheLimitIsRefused) {
  std::vector<std::byte> payload(lane_max_payload_bytes + 1);
  const Piece piece{payload.data(), payload.size()};
  EXPECT_NE(producer_.push(header_of(1), &piece, 1), SendStatus::sent);
  EXPECT_TRUE(empty());
}

TEST_F(LaneTest, UnknownKindsAndFlagsAreMalformed) {
  for (unsigned kind = 0; kind < 256; ++kind) {
    for (const unsigned flags : {0u, unsigned{flag_known}, 0x10u, 0x80u, 0xffu}) {
      const LaneMemory memory(small_lane);
      LaneProducer producer;
      LaneConsumer consumer;
      ASSERT_TRUE(producer.attach(memory.control(), small_lane));
      consumer.attach(memory.control(), small_lane);
      MessageHeader header{};
      header.kind = static_cast<MessageKind>(kind);
      header.flags = static_cast<uint8_t>(flags);
      ASSERT_EQ(producer.push(header, nullptr, 0), SendStatus::sent);
      InboundMessage message;
      bool malformed = false;
      const bool sane = kind >= 1 && kind < message_kinds && (flags & ~flag_known) == 0;
      EXPECT_EQ(consumer.peek(&message, 1, malformed), sane ? 1u : 0u);
      EXPECT_EQ(malformed, !sane);
    }
  }
}

TEST_F(LaneTest, APayloadOutsideTheLaneIsMalformed) {
  constexpr uint32_t length = 100;
  for (const uint32_t beyond : {0u, 1u, length, UINT32_MAX / 2}) {
    const LaneMemory memory(small_lane);
    LaneProducer producer;
    LaneConsumer consumer;
    ASSERT_TRUE(producer.attach(memory.control(), small_lane));
    consumer.attach(memory.control(), small_lane);
    std::vector<std::byte> payload = payload_of(1, length);
    const Piece piece{payload.data(), payload.size()};
    ASSERT_EQ(producer.push(header_of(1), &piece, 1), SendStatus::sent);
    const auto offset = static_cast<uint32_t>(small_lane.data_bytes) - length + beyond;
    std::memcpy(cells_of(memory.control())->payload, &offset, sizeof offset);
    InboundMessage message;
    bool malformed = false;
    EXPECT_EQ(consumer.peek(&message, 1, malformed), beyond == 0 ? 1u : 0u);
    EXPECT_EQ(malformed, beyond != 0);
  }
}

// In bursts that the lane has places for.
void LaneTest::exchange_acknowledgements() {
  uint32_t next = 0;
  for (int round = 0; round < 40; ++round) {
    const uint32_t burst = 1 + static_cast<uint32_t>(round) % (lane_ack_places / 2);
    for (uint32_t cookie = next; cookie < next + burst; ++cookie)
      ASSERT_EQ(producer_.acks().push(&cookie, 1), 1u);
    ASSERT_TRUE(consumer_.ready());
    uint32_t cookies[lane_ack_places];
    bool malformed = false;
    ASSERT_EQ(consumer_.acks().take(cookies, malformed), burst);
    EXPECT_FALSE(malformed);
    for (uint32_t i = 0; i < burst; ++i) EXPECT_EQ(cookies[i], next++);
    EXPECT_FALSE(consumer_.ready());
  }
}

TEST_F(LaneTest, AcknowledgementsNeedNoCell) {
  exchange_acknowledgements();
  EXPECT_EQ(memory_.control()->released.load(), 0U);
}

}  // namespace
}  // namespace lintel

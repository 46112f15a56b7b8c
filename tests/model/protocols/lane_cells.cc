// The cells of a lane, with their byte ring: publish, consume, give back room, sleep for room.
#include <cstring>

#include "lane/lane_consumer.h"
#include "lane/lane_producer.h"
#include "program.h"
#include "util/asymmetric_fence.h"

namespace lintel::model {
namespace {

constexpr uint32_t cells = 2;
constexpr uint32_t data_bytes = 256;

// The messages of a lane that come in place.
template <typename Lane>
struct InPlace final : MessageSink {
  uint32_t taken = 0;
  void* on_new_link(Link&) noexcept override { return nullptr; }
  void on_messages(Link&, const InboundMessage*, unsigned) noexcept override {}
  bool on_put(Link&, const MessageCell& cell, uint64_t first_word,
              uint32_t length) noexcept override {
    Lane::check(copy_of(cell, first_word, length), ++taken);
    return true;
  }
  void on_peer_failed(Link&) noexcept override {}
  void on_remote_done(Link&, uint32_t, RemoteResult) noexcept override {}
  bool may_access(Link&, const RemoteMemory&, bool) noexcept override { return false; }
};

template <uint32_t messages, uint32_t payload_bytes>
struct Lane {
  LaneControl control;
  LaneCell memory[cells];
  std::byte data[data_bytes];
  LaneProducer producer;
  LaneConsumer consumer;
  Doorbell bell;  // of the producer

  Lane() {
    fence_detail::registered.store(true, std::memory_order_relaxed);
    const LaneGeometry geometry{cells, data_bytes};
    require(producer.attach(&control, geometry), "memory");
    consumer.attach(&control, geometry);
  }
  [[nodiscard]] bool push(uint32_t number) {
    MessageHeader header{};
    header.set(MessageKind::put, 0, 0, 0, number, number, payload_bytes);
    header.cookie = header.hdr_data = header.match_bits = number;
    std::byte payload[payload_bytes];
    std::memset(payload, static_cast<int>(number), payload_bytes);
    const Piece piece{payload, payload_bytes};
    return producer.push(header, &piece, 1) == SendStatus::sent;
  }
  void send() {
    for (uint32_t i = 1; i <= messages; ++i)
      while (!push(i)) {
      }
  }
  void send_in_place() {
    for (uint32_t i = 1; i <= messages; ++i) {
      LaneCell* const cell = producer.next_cell();
      if (cell == nullptr) {
        while (!push(i)) {
        }
        continue;
      }
      cell->header.set_rest(i, i, i, payload_bytes, i, 0, i);
      std::memset(cell->payload, static_cast<int>(i), payload_bytes);
      producer.publish(*cell, MessageHeader::first_word(MessageKind::put, 0, 0, 0), payload_bytes);
    }
  }
  void receive_in_place() {
    InPlace<Lane> sink;
    Link link;
    while (sink.taken < messages) {
      if (!consumer.message_waits()) continue;
      require(consumer.deliver_put(sink, link, [] { return nullptr; }) == LaneConsumer::Taken::put,
              "it is a put");
      static_cast<void>(consumer.release_taken());
    }
  }
  // As RoomWait does.
  void send_and_sleep() {
    for (uint32_t i = 1; i <= messages; ++i)
      while (!push(i)) {
        const uint32_t seen = bell.announce_sleep();
        control.sleeps_for_room.store(1, std::memory_order_relaxed);
        heavy_fence();
        if (!producer.room_appeared()) bell.sleep(seen, futex_no_timeout);
        control.sleeps_for_room.store(0, std::memory_order_relaxed);
      }
  }
  // As ReceiveLanes does.
  void wake_sleeping_producer() {
    bell.order_before_look();
    if (consumer.producer_sleeps()) bell.ring();
  }
  template <unsigned most, bool wakes>
  void receive() {
    for (uint32_t taken = 0; taken < messages;) {
      InboundMessage inbound[most];
      bool malformed = false;
      const unsigned count = consumer.peek(inbound, most, malformed);
      require(!malformed, "no message is malformed");
      for (unsigned i = 0; i < count; ++i) check(inbound[i], taken + i + 1);
      if (count != 0 && consumer.release(count) && wakes) wake_sleeping_producer();
      taken += count;
    }
  }
  static void check(const InboundMessage& message, uint32_t number) {
    const MessageHeader& header = message.header;
    require(header.initiator_rank == number && header.cookie == number &&
                header.pt_index == number && header.match_bits == number &&
                header.hdr_data == number && header.length() == payload_bytes,
            "the header is the next one");
    require(message.payload_length == payload_bytes, "the payload is complete");
    std::byte payload[payload_bytes];
    std::memcpy(payload, message.payload, payload_bytes);
    for (const std::byte byte : payload)
      require(byte == static_cast<std::byte>(number), "the payload is the right one");
  }
};

}  // namespace

Protocol lane_cells() {
  using Near = Lane<4, 8>;
  using Sleeps = Lane<3, 8>;
  using Far = Lane<3, 100>;
  return {"LaneProducer, LaneConsumer",
          {"lane/lane_producer", "lane/lane_consumer"},
          {share<Near>("payload in the cell", {&Near::send, &Near::receive<1, false>}),
           share<Near>("in place", {&Near::send_in_place, &Near::receive_in_place}),
           share<Near>("bursts", {&Near::send, &Near::receive<2, false>}),
           share<Far>("byte ring", {&Far::send, &Far::receive<2, false>}),
           share<Sleeps>("sleep for room", {&Sleeps::send_and_sleep, &Sleeps::receive<1, true>})}};
}

}  // namespace lintel::model

// Passes received messages to the sink in bursts, each of one connection. Message path; the poller,
// without any lock when something is handed up. add() with room in the batch hands nothing up.
#pragma once

#include "reliable/connection.h"
#include "reliable/frame_pool.h"
#include "transport/transport.h"
#include "util/assert.h"
#include "util/peer_order.h"

namespace lintel {

class MessageBatch {
 public:
  // Sets the sink until the next call; no message has been delivered yet.
  void begin(MessageSink& sink) noexcept {
    sink_ = &sink;
    handed_up_ = 0;
  }
  // Makes room: `count` more messages of that connection can then be added without a delivery.
  void make_room(const Connection& connection, unsigned count) noexcept LINTEL_REQUIRES(polling) {
    if (connection_ != &connection || count_ + count > burst) deliver();
  }
  // `held`: the buffer of the payload, which returns to `pool` afterwards; nullptr: it is the
  // link's.
  void add(Connection& connection, const MessageHeader& header, const std::byte* payload,
           FrameBuffer* held = nullptr, FramePool* pool = nullptr) noexcept
      LINTEL_REQUIRES(polling) {
    make_room(connection, 1);
    LINTEL_ASSERT(count_ < burst && held_count_ <= count_);
    LINTEL_ASSERT(held == nullptr || pool != nullptr);
    connection_ = &connection;
    messages_[count_++] = {header, payload, header.link_word};
    if (held != nullptr) held_[held_count_++] = {held, pool};
  }
  void deliver() noexcept LINTEL_REQUIRES(polling) {
    if (count_ != 0) hand_up();
  }
  void report_failure(Connection& connection) noexcept LINTEL_REQUIRES(polling) {
    sink_->on_peer_failed(connection);
  }

  [[nodiscard]] unsigned handed_up() const noexcept { return handed_up_; }

 private:
  static constexpr unsigned burst = 32;
  struct Held {
    FrameBuffer* buffer;
    FramePool* pool;
  };

  void announce() noexcept LINTEL_REQUIRES(polling) {
    if (!connection_->life.announce()) return;
    void* const context = sink_->on_new_link(*connection_);
    std::atomic_ref<void*> stored(connection_->context);
    if (stored.load(std::memory_order_acquire) != context)
      stored.store(context, std::memory_order_release);
  }
  [[gnu::noinline]] void hand_up() noexcept LINTEL_REQUIRES(polling) {
    LINTEL_ASSERT(sink_ != nullptr && connection_ != nullptr);
    announce();
    note_received();
    sink_->on_messages(*connection_, messages_, count_);
    handed_up_ += count_;
    for (unsigned i = 0; i < held_count_; ++i) held_[i].pool->release(held_[i].buffer);
    connection_ = nullptr;
    count_ = held_count_ = 0;
  }

  MessageSink* sink_ = nullptr;
  Connection* connection_ = nullptr;
  unsigned count_ = 0;
  unsigned held_count_ = 0;
  unsigned handed_up_ = 0;
  InboundMessage messages_[burst];
  Held held_[burst];
};

}  // namespace lintel

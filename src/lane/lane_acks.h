// Acknowledgements that take four bytes in a line of the lane and no cell. The consumer reads that
// line while it waits for the next cell. An acknowledgement may overtake messages and be overtaken.
// Message path.
#pragma once

#include <cstdint>

#include "lane/lane_layout.h"
#include "transport/transport.h"
#include "util/assert.h"

namespace lintel {

// The producer's end.
class LaneAckWriter {
 public:
  void attach(LaneControl* lane) noexcept {
    lane_ = lane;
    sent_ = taken_ = lane->acks_taken.load(std::memory_order_relaxed);
    next_ = 0;
  }
  // False: no place is free, and the acknowledgement goes as a message.
  [[nodiscard]] bool push(uint32_t cookie) noexcept {
    if (sent_ - taken_ >= lane_ack_places) [[unlikely]] {
      taken_ = lane_->acks_taken.load(std::memory_order_acquire);
      if (sent_ - taken_ >= lane_ack_places) return false;
    }
    LINTEL_ASSERT(next_ < lane_ack_places && sent_ - taken_ < lane_ack_places);
    LaneAcks& acks = lane_->acks;
    acks.cookies[next_].store(cookie, std::memory_order_relaxed);
    next_ = next_ + 1 == lane_ack_places ? 0 : next_ + 1;
    acks.sent.store(++sent_, std::memory_order_release);
    return true;
  }

 private:
  LaneControl* lane_ = nullptr;
  uint32_t sent_ = 0;   // acknowledgements ever sent, modulo 2^32
  uint32_t taken_ = 0;  // number of them that the consumer has taken, as far as known
  uint32_t next_ = 0;   // place of the next one
};

// The consumer's end.
class LaneAckReader {
 public:
  void attach(LaneControl* lane) noexcept {
    lane_ = lane;
    taken_ = published_ = lane->acks_taken.load(std::memory_order_relaxed);
    peeked_ = next_ = 0;
  }
  [[nodiscard]] bool ready() const noexcept {
    return lane_->acks.sent.load(std::memory_order_relaxed) != taken_;
  }
  // Describes up to `max` acknowledgements as messages; they stay until release(). Sets `malformed`
  // if the line has more than fit into it.
  [[nodiscard]] unsigned peek(InboundMessage* messages, unsigned max, bool& malformed) noexcept {
    const uint32_t waiting = lane_->acks.sent.load(std::memory_order_acquire) - taken_;
    return waiting == 0 ? 0 : describe(messages, max, waiting, malformed);
  }
  // Gives back what the last peek() described; returns their number.
  unsigned release() noexcept {
    const uint32_t count = peeked_;
    if (count == 0) return 0;
    taken_ += count;
    next_ += count;
    if (next_ >= lane_ack_places) next_ -= lane_ack_places;
    LINTEL_ASSERT(next_ < lane_ack_places && taken_ - published_ <= 2 * lane_ack_places);
    peeked_ = 0;
    if (taken_ - published_ >= lane_ack_places / 2) {
      published_ = taken_;
      lane_->acks_taken.store(taken_, std::memory_order_release);
    }
    return count;
  }

 private:
  // `waiting` was read from the lane.
  unsigned describe(InboundMessage* messages, unsigned max, uint32_t waiting,
                    bool& malformed) noexcept {
    if (waiting > lane_ack_places) [[unlikely]] {
      malformed = true;
      return 0;
    }
    const unsigned count = waiting < max ? waiting : max;
    uint32_t place = next_;
    for (unsigned i = 0; i < count; ++i) {
      messages[i] = {};
      messages[i].header.kind = MessageKind::ack_batch;
      messages[i].header.cookie = lane_->acks.cookies[place].load(std::memory_order_relaxed);
      place = place + 1 == lane_ack_places ? 0 : place + 1;
    }
    peeked_ = count;
    return count;
  }

  LaneControl* lane_ = nullptr;
  uint32_t taken_ = 0;      // acknowledgements ever taken, modulo 2^32
  uint32_t published_ = 0;  // value of taken_ that was last published to the producer
  uint32_t peeked_ = 0;     // number described by the last peek()
  uint32_t next_ = 0;       // place of the next one
};

}  // namespace lintel

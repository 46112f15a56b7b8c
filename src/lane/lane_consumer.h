// The receiving end of a lane. Not thread-safe: the caller serialises. Message path.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "lane/cell_ring.h"
#include "lane/lane_acks.h"
#include "lane/lane_layout.h"
#include "transport/transport.h"
#include "util/assert.h"

namespace lintel {

class LaneConsumer {
 public:
  // The lane must stay mapped.
  void attach(LaneControl* lane, const LaneGeometry& geometry) noexcept;
  [[nodiscard]] bool attached() const noexcept { return lane_ != nullptr; }

  // A hint: what takes the message reads the word again.
  [[nodiscard]] bool message_waits() const noexcept {
    return next_.is_published_by(word_of(next_.cell()).load(std::memory_order_relaxed));
  }
  [[nodiscard]] bool ready() const noexcept { return message_waits() || acks_.ready(); }

  // The acknowledgements of the lane.
  [[nodiscard]] LaneAckReader& acks() noexcept { return acks_; }
  enum class Taken : uint8_t {
    none,          // it is another message
    put,           // release_taken() follows
    acknowledged,  // the same, after LaneAckWriter::publish()
  };
  // Hands up the message that waits at the front if it is a plain put, and acknowledges it in the
  // LaneAckWriter that find_acks() returns (nullptr: there is none).
  template <typename FindAcks>
  [[nodiscard, gnu::always_inline]] Taken deliver_put(MessageSink& sink, Link& link,
                                                      const FindAcks& find_acks) noexcept
      LINTEL_REQUIRES(polling) {
    LaneCell& cell = next_.cell();
    const uint64_t first =
        std::atomic_ref(reinterpret_cast<uint64_t&>(cell.header)).load(std::memory_order_acquire);
    const auto word = static_cast<uint32_t>(first);
    LINTEL_ASSERT(next_.is_published_by(word));
    if (!is_plain_put(first) || (word & 0xffff) > lane_inline_bytes) [[unlikely]]
      return Taken::none;
    LaneAckWriter* acks = nullptr;
    if (asks_for_ack(first)) {
      acks = find_acks();
      if (acks == nullptr || !acks->has_room()) [[unlikely]]
        return Taken::none;
    }
    const bool succeeded = sink.on_put(link, cell, first, word & 0xffff);
    Taken result = Taken::put;
    if (succeeded && acks != nullptr) {
      acks->add(static_cast<uint32_t>(HeaderWords(cell.header).rank_and_cookie() >> 32));
      result = Taken::acknowledged;
    }
    ring_.advance(next_);
    ++kept_;
    return result;
  }
  // Describes up to `max` waiting messages without releasing them; their payloads stay in place
  // until release(). Stops before a malformed one and sets `malformed`: nothing after it can be
  // trusted.
  [[nodiscard]] unsigned peek(InboundMessage* messages, unsigned max, bool& malformed) noexcept {
    unsigned count = 0;
    CellPlace place = next_;
    while (count < max) {
      LaneCell& cell = place.cell();
      const uint32_t word = word_of(cell).load(std::memory_order_acquire);
      if (!place.is_published_by(word)) break;
      if (!accept(cell, word, messages[count])) [[unlikely]] {
        malformed = true;
        break;
      }
      ++count;
      ring_.advance(place);
    }
    peeked_ = place;
    return count;
  }

  // Gives back what the last peek() returned, `count` messages. True: room was published, so that
  // a producer that sleeps for it must be woken (producer_sleeps()).
  [[nodiscard]] bool release(unsigned count) noexcept {
    next_ = peeked_;
    kept_ += count;
    if (far_bytes_ < bytes_kept_) [[likely]]
      return release_taken();
    return publish_room();
  }
  // The same after deliver_put().
  [[nodiscard]] bool release_taken() noexcept {
    LINTEL_ASSERT(kept_ <= ring_.count());
    return kept_ >= cells_kept_ && publish_room();
  }

  // Publishes the room of an empty lane if the producer requested it. Returns the same as
  // release().
  [[nodiscard]] bool release_on_request() noexcept {
    if (kept_ == 0) return false;
    if ((lane_->wants_room.load(std::memory_order_relaxed) |
         lane_->sleeps_for_room.load(std::memory_order_relaxed)) == 0) {
      return false;
    }
    lane_->wants_room.store(0, std::memory_order_relaxed);
    return publish_room();
  }

  // Before sleeping, or before looking at this lane rarely: true if there was anything to publish.
  bool publish_room() noexcept {
    if (kept_ == 0) return false;
    released_ += kept_;
    kept_ = 0;
    far_bytes_ = 0;
    lane_->released.store(released_, std::memory_order_release);
    return true;
  }

  // After a fence that follows publish_room(). True once per request.
  [[nodiscard]] bool producer_sleeps() noexcept {
    if (lane_->sleeps_for_room.load(std::memory_order_relaxed) == 0) return false;
    lane_->sleeps_for_room.store(0, std::memory_order_relaxed);
    return true;
  }

 private:
  static std::atomic_ref<uint32_t> word_of(LaneCell& cell) noexcept {
    return std::atomic_ref<uint32_t>(cell.header.link_word);
  }
  // Everything that follows uses the private copy: the compiler must not read the lane again.
  static void keep_private_copy() noexcept { asm volatile("" ::: "memory"); }
  // Copies first and checks the copy, since the peer may change the lane at any time.
  bool accept(LaneCell& cell, uint32_t word, InboundMessage& message) noexcept {
    const uint32_t length = word & 0xffff;
    std::memcpy(&message.header, &cell.header, sizeof(MessageHeader));
    message.payload = cell.payload;
    message.payload_length = length;
    if (length > lane_inline_bytes && !accept_far(cell, length, message)) return false;
    keep_private_copy();
    const unsigned kind = static_cast<unsigned>(message.header.kind);
    return kind - 1u < message_kinds - 1u && (message.header.flags & ~flag_known) == 0;
  }
  bool accept_far(const LaneCell& cell, uint32_t length, InboundMessage& message) noexcept;

  LaneControl* lane_ = nullptr;
  CellRing ring_;
  CellPlace next_;
  CellPlace peeked_;  // place behind the last peek()
  LaneAckReader acks_;
  const std::byte* data_ = nullptr;
  uint32_t data_bytes_ = 0;
  uint32_t cells_kept_ = 0;  // room is published at the latest when it is as much as this, or
  uint32_t bytes_kept_ = 0;  // as many bytes of the byte ring
  uint32_t released_ = 0;    // cells released in all, as last published to the producer
  uint32_t kept_ = 0;        // cells taken since then
  uint32_t far_bytes_ = 0;   // the same of bytes of the byte ring
};

}  // namespace lintel

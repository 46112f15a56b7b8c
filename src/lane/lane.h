// A single-producer single-consumer queue of messages in memory that both sides map.
// Message path: no system call, no allocation, no locked instruction on either side.
//
// A ring of cells of two cache lines each, followed by a ring of bytes for longer payloads. A
// message with at most 16 bytes of payload touches one cache line. The first word of a cell's
// header publishes it: the lap of the ring in the upper half, the payload length in the lower. Laps
// are never 0, so zeroed memory is an empty lane.
//
// A single acknowledgement takes four bytes in a line of its own, which the consumer reads while it
// waits for the next cell. It may overtake messages and be overtaken.
//
// The consumer publishes rarely how many cells it has released: after a quarter of the ring, when
// the producer asks, before it sleeps. The producer derives from that which bytes of the byte ring
// are free.
//
// Each side checks what it reads from the lane before use. A faulty peer can damage its own
// messages, but not reach memory outside the lane.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "transport/message.h"
#include "transport/transport.h"
#include "util/guarded_memory.h"

namespace lintel {

inline constexpr uint32_t lane_near_bytes = 16;    // in the cache line of the header
inline constexpr uint32_t lane_inline_bytes = 80;  // in the cell
inline constexpr uint32_t lane_max_payload_bytes = 8192;

struct alignas(128) LaneCell {
  MessageHeader header;
  std::byte payload[lane_inline_bytes];  // or, first: where in the byte ring it lies, uint32_t
};
static_assert(sizeof(LaneCell) == 128 && offsetof(LaneCell, payload) == 48);

// Acknowledgements by their cookies, in order. The producer's line.
inline constexpr uint32_t lane_ack_places = 15;
struct alignas(64) LaneAcks {
  std::atomic<uint32_t> sent{0};  // in all, modulo 2^32
  std::atomic<uint32_t> cookies[lane_ack_places] = {};
};
static_assert(sizeof(LaneAcks) == 64);

struct alignas(128) LaneControl {
  // Consumer's line: cells released and acknowledgements taken since the start, modulo 2^32.
  std::atomic<uint32_t> released{0};
  std::atomic<uint32_t> acks_taken{0};
  // Producer's line: it found the lane full and polls for room; its poller sleeps until there is.
  alignas(64) std::atomic<uint32_t> wants_room{0};
  std::atomic<uint32_t> sleeps_for_room{0};
  LaneAcks acks;
};
static_assert(sizeof(LaneControl) == 2 * sizeof(LaneCell));

struct LaneGeometry {
  uint32_t cells = 0;
  uint32_t data_bytes = 0;

  // A byte ring must hold the largest payload wherever the previous one ended.
  [[nodiscard]] constexpr bool valid() const noexcept {
    return cells >= 4 && cells <= 4096 && cells % cell_distance != 0 &&
           data_bytes >= 2 * lane_max_payload_bytes && data_bytes <= (1u << 24) &&
           data_bytes % 64 == 0;
  }
  // Consecutive messages lie more than a page apart, so that the hardware prefetch of the consumer
  // does not take cells from the producer that is about to write them. The ring visits every cell.
  [[nodiscard]] constexpr uint32_t cell_after(uint32_t cell, uint32_t messages) const noexcept {
    return (cell + messages * cell_distance) % cells;
  }
  // The same with cell_after(0, messages) at hand.
  [[nodiscard]] constexpr uint32_t advanced(uint32_t cell, uint32_t by) const noexcept {
    return cell + by >= cells ? cell + by - cells : cell + by;
  }
  static constexpr uint32_t cell_distance = 37;

  [[nodiscard]] constexpr uint64_t bytes() const noexcept {
    return sizeof(LaneControl) + uint64_t{cells} * sizeof(LaneCell) + data_bytes;
  }
};

namespace lane_detail {
inline uint32_t next_lap(uint32_t lap) noexcept { return lap == 0xffff ? 1 : lap + 1; }
inline LaneCell* cells_of(LaneControl* lane) noexcept {
  return reinterpret_cast<LaneCell*>(lane + 1);
}
inline std::byte* data_of(LaneControl* lane, const LaneGeometry& geometry) noexcept {
  return reinterpret_cast<std::byte*>(cells_of(lane) + geometry.cells);
}
inline void keep_private_copy() noexcept { asm volatile("" ::: "memory"); }
// Asks for exclusive ownership of a cache line that will be written soon.
inline void prefetch_for_write(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}
// Copies the words in which MessageHeader::set() stored it, so that no load waits for stores to
// reach the cache. The first word goes last and publishes.
inline void publish_header(MessageHeader& to, const MessageHeader& from,
                           uint32_t link_word) noexcept {
  const auto copy = [](auto& target, const auto& source) {
    std::atomic_ref(target).store(source, std::memory_order_relaxed);
  };
  copy(to.initiator_rank, from.initiator_rank);
  copy(to.cookie, from.cookie);
  uint64_t word;
  std::memcpy(&word, &from.pt_index, sizeof word);
  std::memcpy(&to.pt_index, &word, sizeof word);
  copy(to.match_bits, from.match_bits);
  copy(to.remote_offset, from.remote_offset);
  copy(to.hdr_data, from.hdr_data);
  uint32_t kinds;
  std::memcpy(&kinds, &from.kind, sizeof kinds);
  std::atomic_ref(reinterpret_cast<uint64_t&>(to))
      .store(uint64_t{kinds} << 32 | link_word, std::memory_order_release);
}
}  // namespace lane_detail

// The sending end. Not thread-safe: the caller serialises. `lane` must stay mapped.
class LaneProducer {
 public:
  // Connection path. The lane must be zeroed, except that its counters may start elsewhere, and not
  // have been used since; the producer may have had another one before. `data_bytes`: so much of
  // the byte ring may be used until extend_data(), a length that is valid. False: no memory.
  [[nodiscard]] bool attach(LaneControl* lane, const LaneGeometry& geometry,
                            uint32_t data_bytes) noexcept;
  [[nodiscard]] bool attach(LaneControl* lane, const LaneGeometry& geometry) noexcept {
    return attach(lane, geometry, geometry.data_bytes);
  }
  [[nodiscard]] bool attached() const noexcept { return lane_ != nullptr; }
  // Nothing is sent any more.
  void detach() noexcept {
    lane_ = nullptr;
    data_ends_.reset();
  }

  // sent, queue_full or inaccessible. At most lane_max_payload_bytes in all pieces together.
  [[nodiscard, gnu::always_inline]] SendStatus push(const MessageHeader& header,
                                                    const Piece* pieces, unsigned count) noexcept {
    if (header.kind == MessageKind::ack_batch && count == 0 && push_ack(header.cookie))
      return SendStatus::sent;
    const uint64_t length = count == 0 ? 0 : pieces->length;
    if (count > 1 || length > lane_inline_bytes || free_cells_ == 0) [[unlikely]]
      return push_in_general(header, pieces, count);
    LaneCell& cell = cells_[cell_];
    // Payload bytes come from the application, whose memory may not be there (PTL_NI_SEGV).
    if (length != 0 && !guarded_copy(cell.payload, pieces->base, length)) [[unlikely]]
      return SendStatus::inaccessible;
    publish(cell, header, static_cast<uint32_t>(length));
    return SendStatus::sent;
  }

  // After queue_full: the message is the first that needs more of the byte ring than may be used.
  [[nodiscard]] bool wants_data() const noexcept { return wants_data_; }
  // All of the byte ring may be used, or never more than so far. Before the ring has wrapped, every
  // byte in it keeps its place.
  void extend_data(bool to_all) noexcept {
    if (to_all) geometry_.data_bytes = all_data_bytes_;
    all_data_bytes_ = geometry_.data_bytes;
    wants_data_ = false;
  }

  // A message came the other way: what follows is rather an answer than a stream. Any thread.
  void note_inbound() noexcept { streak_.store(0, std::memory_order_relaxed); }

  // After queue_full, from any thread: false as long as the consumer released nothing more.
  [[nodiscard]] bool room_appeared() const noexcept {
    return lane_->released.load(std::memory_order_acquire) !=
           full_at_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] LaneControl& control() const noexcept { return *lane_; }

 private:
  static constexpr uint32_t prefetch_distance = 4;
  // In a ping-pong, asking early for a cell ahead only delays the one that is being sent.
  static constexpr uint32_t stream_length = 4;

  // False: no place is free, and the acknowledgement goes as a message.
  bool push_ack(uint32_t cookie) noexcept {
    if (acks_sent_ - acks_taken_ >= lane_ack_places) [[unlikely]] {
      acks_taken_ = lane_->acks_taken.load(std::memory_order_acquire);
      if (acks_sent_ - acks_taken_ >= lane_ack_places) return false;
    }
    LaneAcks& acks = lane_->acks;
    acks.cookies[next_ack_].store(cookie, std::memory_order_relaxed);
    next_ack_ = next_ack_ + 1 == lane_ack_places ? 0 : next_ack_ + 1;
    acks.sent.store(++acks_sent_, std::memory_order_release);
    return true;
  }
  bool refresh_room() noexcept;
  bool reserve_cell() noexcept { return free_cells_ != 0 || refresh_room(); }
  bool reserve_data(uint32_t bytes, uint64_t& position) noexcept;
  SendStatus refuse_full() noexcept;
  SendStatus push_in_general(const MessageHeader& header, const Piece* pieces,
                             unsigned count) noexcept;
  SendStatus push_far(const MessageHeader& header, const Piece* pieces, unsigned count,
                      uint64_t length) noexcept;
  void prefetch_data_ahead(uint32_t bytes) const noexcept;
  // Cache lines that the consumer read a lap ago come back before they are needed.
  void prefetch_ahead(uint32_t length) noexcept {
    const uint32_t streak = streak_.load(std::memory_order_relaxed) + 1;
    streak_.store(streak, std::memory_order_relaxed);
    if (streak <= stream_length || free_cells_ <= prefetch_distance) return;
    const auto* cell =
        reinterpret_cast<const std::byte*>(&cells_[geometry_.advanced(cell_, steps_ahead_)]);
    lane_detail::prefetch_for_write(cell);
    if (length > lane_near_bytes && length <= lane_inline_bytes)
      lane_detail::prefetch_for_write(cell + 64);
  }
  [[gnu::always_inline]] void publish(LaneCell& cell, const MessageHeader& header,
                                      uint32_t length) noexcept {
    lane_detail::publish_header(cell.header, header, lap_ << 16 | length);
    data_ends_[index_] = data_tail_;
    ++sent_;
    --free_cells_;
    cell_ = geometry_.advanced(cell_, step_);
    if (++index_ == geometry_.cells) {
      index_ = 0;
      lap_ = lane_detail::next_lap(lap_);
    }
    prefetch_ahead(length);
  }

  LaneControl* lane_ = nullptr;
  LaneCell* cells_ = nullptr;
  std::byte* data_ = nullptr;
  LaneGeometry geometry_{};      // with as much of the byte ring as may be used
  uint32_t all_data_bytes_ = 0;  // its length; if it is more, the ring has not wrapped yet
  bool wants_data_ = false;
  uint32_t index_ = 0;        // of the next message in this lap
  uint32_t cell_ = 0;         // where it goes
  uint32_t step_ = 0;         // from there to the cell after
  uint32_t steps_ahead_ = 0;  // and to the one to be prefetched
  uint32_t lap_ = 1;
  uint32_t sent_ = 0;                      // cells published in all, modulo 2^32
  uint32_t free_cells_ = 0;                // as far as known
  uint32_t acks_sent_ = 0;                 // in all, modulo 2^32
  uint32_t acks_taken_ = 0;                // of these, as far as known
  uint32_t next_ack_ = 0;                  // place of the next one
  uint64_t data_tail_ = 0;                 // bytes of the byte ring ever taken
  uint64_t data_released_ = 0;             // of these, bytes that are free again
  bool room_asked_ = false;                // since it last appeared
  std::unique_ptr<uint64_t[]> data_ends_;  // data_tail_ after each cell in flight
  std::atomic<uint32_t> streak_{0};        // sent since the last message came the other way
  std::atomic<uint32_t> full_at_{0};       // `released` when the lane was last found full
};

// The receiving end. Not thread-safe: the caller serialises. `lane` must stay mapped.
class LaneConsumer {
 public:
  void attach(LaneControl* lane, const LaneGeometry& geometry) noexcept;
  [[nodiscard]] bool attached() const noexcept { return lane_ != nullptr; }

  [[nodiscard]] bool ready() const noexcept {
    return word_of(cells_[cell_]).load(std::memory_order_acquire) >> 16 == lap_ ||
           lane_->acks.sent.load(std::memory_order_relaxed) != acks_taken_;
  }

  // Describes up to `max` waiting messages without releasing them; their payloads stay in place
  // until release(). Stops before a malformed one and sets `malformed`: nothing after it can be
  // trusted.
  [[nodiscard]] unsigned peek(InboundMessage* messages, unsigned max, bool& malformed) noexcept {
    unsigned count = 0;
    const uint32_t acks_sent = lane_->acks.sent.load(std::memory_order_acquire);
    if (acks_sent != acks_taken_) count = peek_acks(messages, max, acks_sent, malformed);
    uint32_t index = index_;
    uint32_t place = cell_;
    uint32_t lap = lap_;
    while (count < max) {
      LaneCell& cell = cells_[place];
      const uint32_t word = word_of(cell).load(std::memory_order_acquire);
      if (word >> 16 != lap) break;
      if (!accept(cell, word, messages[count])) [[unlikely]] {
        malformed = true;
        break;
      }
      ++count;
      place = geometry_.advanced(place, step_);
      if (++index == geometry_.cells) {
        index = 0;
        lap = lane_detail::next_lap(lap);
      }
    }
    peeked_index_ = index;
    peeked_cell_ = place;
    peeked_lap_ = lap;
    return count;
  }

  // Gives back what the last peek() returned, `count` messages. True: room was published, so that
  // a producer that sleeps for it must be woken (producer_sleeps()).
  [[nodiscard]] bool release(unsigned count) noexcept {
    if (acks_peeked_ != 0) {
      count -= acks_peeked_;
      acks_taken_ += acks_peeked_;
      next_ack_ += acks_peeked_;
      if (next_ack_ >= lane_ack_places) next_ack_ -= lane_ack_places;
      acks_peeked_ = 0;
      if (acks_taken_ - acks_published_ >= lane_ack_places / 2) {
        acks_published_ = acks_taken_;
        lane_->acks_taken.store(acks_taken_, std::memory_order_release);
      }
      if (count == 0) return false;
    }
    index_ = peeked_index_;
    cell_ = peeked_cell_;
    lap_ = peeked_lap_;
    taken_ += count;
    if (taken_ - published_ < geometry_.cells / 4 && far_bytes_ < geometry_.data_bytes / 4)
      return false;
    publish_room();
    return true;
  }

  // For a lane found empty: publishes room if the producer asked for it; true as for release().
  [[nodiscard]] bool release_on_request() noexcept {
    if (taken_ == published_) return false;
    if ((lane_->wants_room.load(std::memory_order_relaxed) |
         lane_->sleeps_for_room.load(std::memory_order_relaxed)) == 0) {
      return false;
    }
    lane_->wants_room.store(0, std::memory_order_relaxed);
    return publish_room();
  }

  // Before sleeping, or before looking at this lane rarely: true if there was anything to publish.
  bool publish_room() noexcept {
    if (taken_ == published_) return false;
    published_ = taken_;
    far_bytes_ = 0;
    lane_->released.store(taken_, std::memory_order_release);
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
  // Copies first and checks the copy, since the peer may change the lane at any time.
  bool accept(LaneCell& cell, uint32_t word, InboundMessage& message) noexcept {
    const uint32_t length = word & 0xffff;
    std::memcpy(&message.header, &cell.header, sizeof(MessageHeader));
    message.payload = cell.payload;
    message.payload_length = length;
    if (length > lane_inline_bytes && !accept_far(cell, length, message)) return false;
    // Everything that follows uses the private copy: the compiler must not read the lane again.
    lane_detail::keep_private_copy();
    const unsigned kind = static_cast<unsigned>(message.header.kind);
    return kind - 1u < message_kinds - 1u && (message.header.flags & ~flag_known) == 0;
  }
  bool accept_far(const LaneCell& cell, uint32_t length, InboundMessage& message) noexcept;
  // `sent` was read from the lane.
  unsigned peek_acks(InboundMessage* messages, unsigned max, uint32_t sent,
                     bool& malformed) noexcept {
    const uint32_t waiting = sent - acks_taken_;
    if (waiting > lane_ack_places) [[unlikely]] {
      malformed = true;
      return 0;
    }
    const unsigned count = waiting < max ? waiting : max;
    uint32_t place = next_ack_;
    for (unsigned i = 0; i < count; ++i) {
      messages[i] = {};
      messages[i].header.kind = MessageKind::ack_batch;
      messages[i].header.cookie = lane_->acks.cookies[place].load(std::memory_order_relaxed);
      place = place + 1 == lane_ack_places ? 0 : place + 1;
    }
    acks_peeked_ = count;
    return count;
  }

  LaneControl* lane_ = nullptr;
  LaneCell* cells_ = nullptr;
  const std::byte* data_ = nullptr;
  LaneGeometry geometry_{};
  uint32_t index_ = 0;
  uint32_t cell_ = 0;
  uint32_t step_ = 0;
  uint32_t lap_ = 1;
  // The same behind the last peek().
  uint32_t peeked_index_ = 0;
  uint32_t peeked_cell_ = 0;
  uint32_t peeked_lap_ = 1;
  uint32_t acks_taken_ = 0;
  uint32_t acks_published_ = 0;  // of these, known to the producer
  uint32_t acks_peeked_ = 0;     // by the last peek()
  uint32_t next_ack_ = 0;        // place of the next one
  uint32_t taken_ = 0;           // cells released by the owner of this object
  uint32_t published_ = 0;       // of these, known to the producer
  uint32_t far_bytes_ = 0;       // of the byte ring, taken since
};

}  // namespace lintel

// The sending end of a lane. Not thread-safe: the caller serialises. Message path.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "lane/byte_ring.h"
#include "lane/cell_ring.h"
#include "lane/lane_acks.h"
#include "lane/lane_layout.h"
#include "lane/prefetch.h"
#include "transport/transport.h"
#include "util/assert.h"
#include "util/guarded_memory.h"

namespace lintel {

class LaneProducer {
 public:
  // Connection path. The lane must stay mapped. It must be zeroed, except that its counters may
  // start elsewhere, and not have been used since; the producer may have had another one before.
  // `data_bytes`: so much of the byte ring may be used until extend_data(), a length that is valid.
  // False: no memory.
  [[nodiscard]] bool attach(LaneControl* lane, const LaneGeometry& geometry,
                            uint32_t data_bytes) noexcept;
  [[nodiscard]] bool attach(LaneControl* lane, const LaneGeometry& geometry) noexcept {
    return attach(lane, geometry, geometry.data_bytes);
  }
  [[nodiscard]] bool attached() const noexcept { return lane_ != nullptr; }
  // Detaches from the lane: no message can be sent any more.
  void detach() noexcept {
    lane_ = nullptr;
    bytes_.detach();
  }

  // sent, queue_full or inaccessible. At most lane_max_payload_bytes in all pieces together.
  [[nodiscard, gnu::always_inline]] SendStatus push(const MessageHeader& header,
                                                    const Piece* pieces, unsigned count) noexcept {
    const uint64_t length = count == 0 ? 0 : pieces->length;
    if (count > 1 || length > lane_inline_bytes || free_ == 0) [[unlikely]]
      return push_in_general(header, pieces, count);
    LaneCell& cell = next_.cell();
    // Payload bytes come from the application, whose memory may not be there (PTL_NI_SEGV).
    if (length != 0 && !guarded_copy(cell.payload, pieces->base, length)) [[unlikely]]
      return SendStatus::inaccessible;
    send(cell, header, static_cast<uint32_t>(length));
    return SendStatus::sent;
  }

  // Cell of the next message; nullptr: none is known to be free.
  [[nodiscard]] LaneCell* next_cell() const noexcept {
    return free_ != 0 ? &next_.cell() : nullptr;
  }
  // Sends the message in next_cell(), as Transport::publish().
  [[gnu::always_inline]] void publish(LaneCell& cell, uint64_t first_word,
                                      uint32_t length) noexcept {
    LINTEL_ASSERT(free_ != 0 && free_ <= ring_.count());
    LINTEL_ASSERT(&cell == &next_.cell() && length <= lane_max_payload_bytes);
    LINTEL_ASSERT(static_cast<uint32_t>(first_word) == 0);
    std::atomic_ref(reinterpret_cast<uint64_t&>(cell.header))
        .store(first_word | next_.link_word(length), std::memory_order_release);
    --free_;
    ring_.advance(next_);
    prefetch_ahead(length);
  }

  // The acknowledgements to the lane.
  [[nodiscard]] LaneAckWriter& acks() noexcept { return acks_; }

  // After queue_full: the message is the first that needs more of the byte ring than may be used.
  [[nodiscard]] bool wants_data() const noexcept { return wants_data_; }
  // All of the byte ring may be used, or never more than so far.
  void extend_data(bool to_all) noexcept {
    bytes_.extend(to_all);
    wants_data_ = false;
  }

  // A message came the other way: what follows is rather an answer than a stream. Any thread.
  void note_inbound() noexcept { streak_.store(0, std::memory_order_relaxed); }

  // After queue_full, from any thread: false as long as the consumer released nothing more.
  [[nodiscard]] bool room_appeared() const noexcept {
    return lane_->released.load(std::memory_order_relaxed) !=
           full_at_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] LaneControl& control() const noexcept { return *lane_; }
  // Number of cells, and of cells that the consumer has not released, as far as known; 0 if no lane
  // is attached. For debuggers.
  [[nodiscard]] uint32_t cells() const noexcept { return attached() ? ring_.count() : 0; }
  [[nodiscard]] uint32_t cells_in_flight() const noexcept {
    return cells() - (attached() ? free_ : 0);
  }

 private:
  static constexpr uint32_t prefetch_distance = 4;
  // Number of messages in a row from which on cells are prefetched. In a ping-pong, a prefetch only
  // delays the message that is being sent.
  static constexpr uint32_t stream_length = 4;

  bool refresh_room() noexcept;
  // Number of cells published in all, modulo 2^32.
  [[nodiscard]] uint32_t sent() const noexcept { return room_end_ - free_; }
  bool reserve_cell() noexcept { return free_ != 0 || refresh_room(); }
  SendStatus refuse_full() noexcept;
  SendStatus push_in_general(const MessageHeader& header, const Piece* pieces,
                             unsigned count) noexcept;
  SendStatus push_far(const MessageHeader& header, const Piece* pieces, unsigned count,
                      uint64_t length) noexcept;
  // Copies the words in which MessageHeader::set() stored it, so that no load waits for stores to
  // reach the cache. The first word publishes. Not as one store of 64 bytes: that of Arm (ST64B)
  // faults on write-back memory, unless the processor has FEAT_LS64WB.
  [[gnu::always_inline]] void send(LaneCell& cell, const MessageHeader& from,
                                   uint32_t length) noexcept {
    MessageHeader& to = cell.header;
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
    publish(cell, uint64_t{kinds} << 32, length);
  }
  // Cache lines that the consumer read a lap ago come back before they are needed.
  void prefetch_ahead(uint32_t length) noexcept {
    const uint32_t streak = streak_.load(std::memory_order_relaxed) + 1;
    streak_.store(streak, std::memory_order_relaxed);
    if (streak <= stream_length || free_ <= prefetch_distance) return;
    const auto* cell = reinterpret_cast<const std::byte*>(&ring_.beyond(next_, bytes_ahead_));
    prefetch_for_write(cell);
    if (length > lane_near_bytes && length <= lane_inline_bytes) prefetch_for_write(cell + 64);
  }
  LaneControl* lane_ = nullptr;
  CellRing ring_;
  CellPlace next_;
  LaneAckWriter acks_;
  ByteRing bytes_;
  uint64_t bytes_ahead_ = 0;  // distance from the next cell to the one to be prefetched
  uint32_t free_ = 0;         // cells that are known to be free
  uint32_t room_end_ = 0;     // value of sent() when these have been published
  bool room_asked_ = false;   // room was requested since cells were last released
  bool wants_data_ = false;
  std::atomic<uint32_t> streak_{0};   // messages sent since one came in the other direction
  std::atomic<uint32_t> full_at_{0};  // `released` when the lane was last found full
};

}  // namespace lintel

// A lane: a single-producer single-consumer queue of messages in memory that both sides map.
// LaneProducer and LaneConsumer are its two ends. Neither makes a system call, an allocation or a
// locked instruction on the message path.
//
// A ring of cells of two cache lines each, followed by a ring of bytes for longer payloads. A
// message with at most 16 bytes of payload touches one cache line. The first word of a cell's
// header publishes it: the lap of the ring in the upper half, the payload length in the lower. Laps
// are never 0, so zeroed memory is an empty lane.
//
// Acknowledgements take four bytes each in a line of their own (lane_acks.h).
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

#include "transport/message.h"

namespace lintel {

inline constexpr uint32_t lane_near_bytes = 16;  // payload in the cache line of the header
inline constexpr uint32_t lane_inline_bytes = cell_payload_bytes;  // payload in the cell
inline constexpr uint32_t lane_max_payload_bytes = 8192;

// The payload of a longer message is its offset in the byte ring, uint32_t.
using LaneCell = MessageCell;

// Acknowledgements by their cookies, in order. The producer's line.
inline constexpr uint32_t lane_ack_places = 15;
struct alignas(64) LaneAcks {
  std::atomic<uint32_t> sent{0};  // number ever sent, modulo 2^32
  std::atomic<uint32_t> cookies[lane_ack_places] = {};
};
static_assert(sizeof(LaneAcks) == 64);

struct alignas(128) LaneControl {
  // Consumer's line: cells released and acknowledgements taken since the start, modulo 2^32.
  std::atomic<uint32_t> released{0};
  std::atomic<uint32_t> acks_taken{0};
  // Producer's line: the producer found the lane full and polls for room, or its poller sleeps
  // until there is room.
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
  // Distance from the first cell to that of a later message.
  [[nodiscard]] constexpr uint64_t bytes_after(uint32_t messages) const noexcept {
    return uint64_t{cell_after(0, messages)} * sizeof(LaneCell);
  }
  static constexpr uint32_t cell_distance = 37;

  [[nodiscard]] constexpr uint64_t bytes() const noexcept {
    return sizeof(LaneControl) + uint64_t{cells} * sizeof(LaneCell) + data_bytes;
  }
};

[[nodiscard]] inline LaneCell* cells_of(LaneControl* lane) noexcept {
  return reinterpret_cast<LaneCell*>(lane + 1);
}
[[nodiscard]] inline std::byte* data_of(LaneControl* lane, const LaneGeometry& geometry) noexcept {
  return reinterpret_cast<std::byte*>(cells_of(lane) + geometry.cells);
}

}  // namespace lintel

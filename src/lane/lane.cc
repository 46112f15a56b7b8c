// The two ends of a lane: reserving, filling and publishing cells; checking and describing them.
// Message path.
#include "lane/lane.h"

#include <new>

#include "util/guarded_memory.h"

namespace lintel {

using namespace lane_detail;

namespace {

// Payload bytes come from the application, whose memory may not be there (PTL_NI_SEGV).
bool gather(std::byte* target, const Piece* pieces, unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) {
    if (pieces[i].length == 0) continue;
    if (!guarded_copy(target, pieces[i].base, pieces[i].length)) return false;
    target += pieces[i].length;
  }
  return true;
}

// Everything that follows uses the private copy: the compiler must not read the lane again.
inline void keep_private_copy() noexcept { asm volatile("" ::: "memory"); }

}  // namespace

bool LaneProducer::attach(LaneControl* lane, const LaneGeometry& geometry) noexcept {
  data_ends_.reset(new (std::nothrow) uint64_t[geometry.cells]());
  if (data_ends_ == nullptr) return false;
  geometry_ = geometry;
  cells_ = cells_of(lane);
  data_ = data_of(lane, geometry);
  free_cells_ = geometry.cells;
  lane_ = lane;
  return true;
}

// True if the consumer released cells that were not known to be free.
bool LaneProducer::refresh_room() noexcept {
  const uint32_t released = lane_->released.load(std::memory_order_acquire);
  const uint32_t in_flight = sent_ - released;
  // Nothing new, or nonsense: more in flight than ever was, or room that was there before taken
  // back.
  if (in_flight >= geometry_.cells - free_cells_) return false;
  free_cells_ = geometry_.cells - in_flight;
  room_asked_ = false;
  const uint32_t back = in_flight + 1;  // how far behind index_ the last released cell lies
  data_released_ = data_ends_[index_ >= back ? index_ - back : index_ + geometry_.cells - back];
  return true;
}

inline bool LaneProducer::reserve_cell() noexcept { return free_cells_ != 0 || refresh_room(); }

// Payloads are contiguous: one that does not fit before the end of the ring starts at its
// beginning.
bool LaneProducer::reserve_data(uint32_t bytes, uint64_t& position) noexcept {
  position = data_tail_;
  const uint64_t offset = position % geometry_.data_bytes;
  if (offset + bytes > geometry_.data_bytes) position += geometry_.data_bytes - offset;
  const uint64_t end = position + bytes;
  if (end - data_released_ <= geometry_.data_bytes) return true;
  return refresh_room() && end - data_released_ <= geometry_.data_bytes;
}

SendStatus LaneProducer::refuse_full() noexcept {
  // What `released` was when it was found to be too little, not what it may be by now.
  full_at_.store(sent_ - (geometry_.cells - free_cells_), std::memory_order_relaxed);
  if (!room_asked_) lane_->wants_room.store(1, std::memory_order_relaxed);
  room_asked_ = true;
  return SendStatus::queue_full;
}

inline void LaneProducer::publish(LaneCell& cell, const MessageHeader& header,
                                  uint32_t length) noexcept {
  std::memcpy(reinterpret_cast<std::byte*>(&cell.header) + sizeof(uint32_t),
              reinterpret_cast<const std::byte*>(&header) + sizeof(uint32_t),
              sizeof(MessageHeader) - sizeof(uint32_t));
  std::atomic_ref<uint32_t>(cell.header.link_word)
      .store(lap_ << 16 | length, std::memory_order_release);
  data_ends_[index_] = data_tail_;
  ++sent_;
  --free_cells_;
  if (++index_ == geometry_.cells) {
    index_ = 0;
    lap_ = next_lap(lap_);
  }
  prefetch_ahead(length);
}

// Cache lines that the consumer read a lap ago come back before they are needed.
inline void LaneProducer::prefetch_ahead(uint32_t length) noexcept {
  const uint32_t streak = streak_.load(std::memory_order_relaxed) + 1;
  streak_.store(streak, std::memory_order_relaxed);
  if (streak <= stream_length || free_cells_ <= prefetch_distance) return;
  uint32_t ahead = index_ + prefetch_distance;
  if (ahead >= geometry_.cells) ahead -= geometry_.cells;
  const auto* cell = reinterpret_cast<const std::byte*>(&cells_[ahead]);
  prefetch_for_write(cell);
  if (length > lane_near_bytes && length <= lane_inline_bytes) prefetch_for_write(cell + 64);
}

SendStatus LaneProducer::push(const MessageHeader& header, const Piece* pieces,
                              unsigned count) noexcept {
  uint64_t length = 0;
  for (unsigned i = 0; i < count; ++i) length += pieces[i].length;
  if (length > lane_inline_bytes) [[unlikely]]
    return push_far(header, pieces, count, length);
  if (!reserve_cell()) [[unlikely]]
    return refuse_full();
  LaneCell& cell = cells_[index_];
  if (!gather(cell.payload, pieces, count)) return SendStatus::inaccessible;
  publish(cell, header, static_cast<uint32_t>(length));
  return SendStatus::sent;
}

SendStatus LaneProducer::push_far(const MessageHeader& header, const Piece* pieces, unsigned count,
                                  uint64_t length) noexcept {
  if (length > lane_max_payload_bytes) return SendStatus::inaccessible;
  // No cache line is shared between payloads.
  const uint32_t rounded = (static_cast<uint32_t>(length) + 63) & ~63u;
  uint64_t position;
  if (!reserve_cell() || !reserve_data(rounded, position)) return refuse_full();
  const uint32_t offset = static_cast<uint32_t>(position % geometry_.data_bytes);
  if (!gather(data_ + offset, pieces, count)) return SendStatus::inaccessible;
  LaneCell& cell = cells_[index_];
  std::memcpy(cell.payload, &offset, sizeof offset);
  data_tail_ = position + rounded;
  publish(cell, header, static_cast<uint32_t>(length));
  return SendStatus::sent;
}

void LaneConsumer::attach(LaneControl* lane, const LaneGeometry& geometry) noexcept {
  lane_ = lane;
  geometry_ = geometry;
  cells_ = cells_of(lane);
  data_ = data_of(lane, geometry);
  index_ = 0;
  lap_ = 1;
  taken_ = published_ = far_bytes_ = 0;
}

// Copies first and checks the copy, since the peer may change the lane at any time.
inline bool LaneConsumer::accept(LaneCell& cell, uint32_t word, InboundMessage& message) noexcept {
  const uint32_t length = word & 0xffff;
  std::memcpy(&message.header, &cell.header, sizeof(MessageHeader));
  message.payload = cell.payload;
  message.payload_length = length;
  if (length > lane_inline_bytes) {
    uint32_t offset;
    std::memcpy(&offset, cell.payload, sizeof offset);
    keep_private_copy();
    if (length > lane_max_payload_bytes || offset > geometry_.data_bytes - length) return false;
    message.payload = data_ + offset;
    far_bytes_ += length;
  } else {
    keep_private_copy();
  }
  const unsigned kind = static_cast<unsigned>(message.header.kind);
  return kind - 1u < message_kinds - 1u && (message.header.flags & ~flag_known) == 0;
}

unsigned LaneConsumer::peek(InboundMessage* messages, unsigned max, bool& malformed) noexcept {
  unsigned count = 0;
  uint32_t index = index_;
  uint32_t lap = lap_;
  if (max > geometry_.cells) max = geometry_.cells;
  while (count < max) {
    LaneCell& cell = cells_[index];
    const uint32_t word = word_of(cell).load(std::memory_order_acquire);
    if (word >> 16 != lap) break;
    if (!accept(cell, word, messages[count])) [[unlikely]] {
      malformed = true;
      break;
    }
    ++count;
    if (++index == geometry_.cells) {
      index = 0;
      lap = next_lap(lap);
    }
  }
  return count;
}

}  // namespace lintel

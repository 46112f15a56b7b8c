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

}  // namespace

bool LaneProducer::attach(LaneControl* lane, const LaneGeometry& geometry,
                          uint32_t data_bytes) noexcept {
  data_ends_.reset(new (std::nothrow) uint64_t[geometry.cells]());
  if (data_ends_ == nullptr) return false;
  geometry_ = geometry;
  geometry_.data_bytes = data_bytes;
  all_data_bytes_ = geometry.data_bytes;
  wants_data_ = false;
  cells_ = cells_of(lane);
  data_ = data_of(lane, geometry);
  step_ = geometry.cell_after(0, 1);
  steps_ahead_ = geometry.cell_after(0, prefetch_distance);
  free_cells_ = geometry.cells;
  index_ = cell_ = next_ack_ = 0;
  lap_ = 1;
  sent_ = lane->released.load(std::memory_order_relaxed);
  acks_sent_ = acks_taken_ = lane->acks_taken.load(std::memory_order_relaxed);
  data_tail_ = data_released_ = 0;
  room_asked_ = false;
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

SendStatus LaneProducer::push_in_general(const MessageHeader& header, const Piece* pieces,
                                         unsigned count) noexcept {
  uint64_t length = 0;
  for (unsigned i = 0; i < count; ++i) length += pieces[i].length;
  if (length > lane_inline_bytes) [[unlikely]]
    return push_far(header, pieces, count, length);
  if (!reserve_cell()) [[unlikely]]
    return refuse_full();
  LaneCell& cell = cells_[cell_];
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
  if (all_data_bytes_ != geometry_.data_bytes && data_tail_ + rounded > geometry_.data_bytes)
      [[unlikely]] {
    wants_data_ = true;
    return SendStatus::queue_full;
  }
  if (!reserve_cell() || !reserve_data(rounded, position)) return refuse_full();
  const uint32_t offset = static_cast<uint32_t>(position % geometry_.data_bytes);
  if (!gather(data_ + offset, pieces, count)) return SendStatus::inaccessible;
  LaneCell& cell = cells_[cell_];
  std::memcpy(cell.payload, &offset, sizeof offset);
  data_tail_ = position + rounded;
  publish(cell, header, static_cast<uint32_t>(length));
  prefetch_data_ahead(rounded);
  return SendStatus::sent;
}

// The next payload is probably as long. The consumer read its cache lines a lap ago: stores would
// get them back one after the other, and the next locked instruction would wait for all of them.
void LaneProducer::prefetch_data_ahead(uint32_t bytes) const noexcept {
  if (data_tail_ + bytes - data_released_ > geometry_.data_bytes) return;
  const std::byte* line = data_ + data_tail_ % geometry_.data_bytes;
  const std::byte* const end = data_ + geometry_.data_bytes;
  for (uint32_t done = 0; done < bytes && line < end; done += 64, line += 64)
    prefetch_for_write(line);
}

void LaneConsumer::attach(LaneControl* lane, const LaneGeometry& geometry) noexcept {
  lane_ = lane;
  geometry_ = geometry;
  cells_ = cells_of(lane);
  data_ = data_of(lane, geometry);
  index_ = cell_ = 0;
  step_ = geometry.cell_after(0, 1);
  lap_ = 1;
  taken_ = published_ = lane->released.load(std::memory_order_relaxed);
  acks_taken_ = acks_published_ = lane->acks_taken.load(std::memory_order_relaxed);
  far_bytes_ = acks_peeked_ = next_ack_ = 0;
}

// The payload lies in the byte ring. False: no correct peer writes that.
bool LaneConsumer::accept_far(const LaneCell& cell, uint32_t length,
                              InboundMessage& message) noexcept {
  uint32_t offset;
  std::memcpy(&offset, cell.payload, sizeof offset);
  keep_private_copy();
  if (length > lane_max_payload_bytes || offset > geometry_.data_bytes - length) return false;
  message.payload = data_ + offset;
  far_bytes_ += length;
  return true;
}

}  // namespace lintel

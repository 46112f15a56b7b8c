// Reserving, filling and publishing cells. Message path, except attach().
#include "lane/lane_producer.h"

namespace lintel {

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
  if (!bytes_.attach(data_of(lane, geometry), geometry, data_bytes)) return false;
  wants_data_ = false;
  ring_ = CellRing(lane, geometry);
  next_ = ring_.start();
  acks_.attach(lane);
  bytes_ahead_ = geometry.bytes_after(prefetch_distance);
  free_ = geometry.cells;
  room_end_ = lane->released.load(std::memory_order_relaxed) + free_;
  room_asked_ = false;
  lane_ = lane;
  return true;
}

// True if the consumer released cells that were not known to be free.
bool LaneProducer::refresh_room() noexcept {
  const uint32_t released = lane_->released.load(std::memory_order_acquire);
  const uint32_t in_flight = sent() - released;
  // No cell was released, or the value is invalid: more cells in flight than before.
  if (in_flight >= ring_.count() - free_) return false;
  LINTEL_ASSERT(in_flight < ring_.count());
  room_end_ = released + ring_.count();
  free_ = ring_.count() - in_flight;
  room_asked_ = false;
  bytes_.note_released(released);
  return true;
}

SendStatus LaneProducer::refuse_full() noexcept {
  // The value of `released` with which the lane was full; the current one may be higher.
  full_at_.store(room_end_ - ring_.count(), std::memory_order_relaxed);
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
  LaneCell& cell = next_.cell();
  if (!gather(cell.payload, pieces, count)) return SendStatus::inaccessible;
  send(cell, header, static_cast<uint32_t>(length));
  return SendStatus::sent;
}

SendStatus LaneProducer::push_far(const MessageHeader& header, const Piece* pieces, unsigned count,
                                  uint64_t length) noexcept {
  if (length > lane_max_payload_bytes) return SendStatus::inaccessible;
  const auto bytes = static_cast<uint32_t>(length);
  if (bytes_.must_grow_for(bytes)) [[unlikely]] {
    wants_data_ = true;
    return SendStatus::queue_full;
  }
  const ByteRing::Room room = bytes_.room_for(bytes);
  if (!reserve_cell() || (!bytes_.is_free(room) && !(refresh_room() && bytes_.is_free(room))))
    return refuse_full();
  if (!gather(bytes_.at(room), pieces, count)) return SendStatus::inaccessible;
  LaneCell& cell = next_.cell();
  std::memcpy(cell.payload, &room.offset, sizeof room.offset);
  bytes_.take(room, sent());
  send(cell, header, bytes);
  bytes_.prefetch_behind(room);
  return SendStatus::sent;
}

}  // namespace lintel

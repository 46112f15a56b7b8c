// Checking and describing cells. Message path, except attach().
#include "lane/lane_consumer.h"

namespace lintel {

void LaneConsumer::attach(LaneControl* lane, const LaneGeometry& geometry) noexcept {
  lane_ = lane;
  ring_ = CellRing(lane, geometry);
  next_ = ring_.start();
  acks_.attach(lane);
  data_ = data_of(lane, geometry);
  data_bytes_ = geometry.data_bytes;
  cells_kept_ = geometry.cells / 4;
  bytes_kept_ = geometry.data_bytes / 4;
  released_ = lane->released.load(std::memory_order_relaxed);
  kept_ = far_bytes_ = 0;
}

// The payload lies in the byte ring. False: no correct peer writes that.
bool LaneConsumer::accept_far(const LaneCell& cell, uint32_t length,
                              InboundMessage& message) noexcept {
  uint32_t offset;
  std::memcpy(&offset, cell.payload, sizeof offset);
  keep_private_copy();
  if (length > lane_max_payload_bytes || offset > data_bytes_ - length) return false;
  message.payload = data_ + offset;
  far_bytes_ += length;
  return true;
}

}  // namespace lintel

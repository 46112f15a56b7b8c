// Before the poller sleeps: making sure that whatever it waits for rings its doorbell.
#include "shm/shm_transport.h"

namespace lintel {

bool ShmTransport::arm(bool blocked_senders) noexcept {
  if (segment_->header().lane_generation.load(std::memory_order_acquire) != generation_seen_)
    return false;
  for (const uint32_t number : active_lanes_) {
    ReceiveLane& lane = lanes_[number];
    if (lane.consumer.ready()) {
      make_hot(lane);
      return false;
    }
    // Nobody polls for a while; producers must find out about their room now.
    if (lane.consumer.publish_room()) wake_sleeping_producer(lane);
  }
  if (!blocked_senders) return true;

  for (ShmLink* link = all_links_.load(std::memory_order_acquire); link != nullptr;
       link = link->next) {
    if (!link->send_blocked.load(std::memory_order_relaxed)) continue;
    link->producer.control().sleeps_for_room.store(1, std::memory_order_relaxed);
    armed_for_room_ = true;
  }
  if (!armed_for_room_) return false;  // room appeared before we looked
  heavy_fence();
  for (ShmLink* link = all_links_.load(std::memory_order_acquire); link != nullptr;
       link = link->next) {
    if (!link->send_blocked.load(std::memory_order_relaxed)) continue;
    if (link->failed.load(std::memory_order_relaxed) || link->producer.room_appeared())
      return false;
  }
  return true;
}

void ShmTransport::disarm() noexcept {
  if (!armed_for_room_) return;
  armed_for_room_ = false;
  for (ShmLink* link = all_links_.load(std::memory_order_acquire); link != nullptr;
       link = link->next) {
    if (link->send_blocked.load(std::memory_order_relaxed))
      link->producer.control().sleeps_for_room.store(0, std::memory_order_relaxed);
  }
}

}  // namespace lintel

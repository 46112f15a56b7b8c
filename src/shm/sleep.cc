// Before the poller sleeps: making sure that whatever it waits for rings its doorbell.
#include "shm/shm_transport.h"

namespace lintel {

template <typename Action>
void ShmTransport::for_each_blocked_link(Action&& action) noexcept {
  for (ShmLink* link = all_links_.load(std::memory_order_acquire); link != nullptr;
       link = link->next) {
    if (link->send_blocked.load(std::memory_order_acquire) &&
        !link->failed.load(std::memory_order_relaxed)) {
      action(*link);
    }
  }
}

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
  return !blocked_senders || arm_for_room();
}

bool ShmTransport::arm_for_room() noexcept {
  for_each_blocked_link([this](ShmLink& link) {
    link.producer.control().sleeps_for_room.store(1, std::memory_order_relaxed);
    armed_for_room_ = true;
  });
  if (!armed_for_room_) return true;  // they wait for something else
  segment_->header().doorbell.fences.heavy();
  bool still_full = true;
  for_each_blocked_link([&](ShmLink& link) { still_full &= !link.producer.room_appeared(); });
  return still_full;
}

void ShmTransport::disarm() noexcept {
  if (!armed_for_room_) return;
  armed_for_room_ = false;
  for_each_blocked_link([](ShmLink& link) {
    link.producer.control().sleeps_for_room.store(0, std::memory_order_relaxed);
  });
}

}  // namespace lintel

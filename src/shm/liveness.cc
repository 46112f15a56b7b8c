// Peers that finished or died: taking what they still sent, reporting them, reclaiming their lanes.
// Connection path; makes system calls.
#include "shm/leftovers.h"
#include "shm/shm_transport.h"

namespace lintel {

// System calls spent on lanes of peers that nobody waits for, per check.
static constexpr unsigned reclaim_checks = 4;

void ShmTransport::check_peers(MessageSink& sink, Link* const* watch, unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) {
    ShmLink& link = static_cast<ShmLink&>(*watch[i]);
    if (link.failure_reported) continue;
    if (link.segment == nullptr || !link.segment->owner_alive()) fail_link(sink, link, Cause::gone);
  }
  reclaim_some_lanes(sink);
}

void ShmTransport::fail_link(MessageSink& sink, ShmLink& link, Cause cause) noexcept {
  if (link.failure_reported) return;
  link.failure_reported = true;
  const uint32_t number = link.receive_lane;
  if (cause == Cause::gone && number != no_lane) {
    // A malformed message among the last ones ends the draining, since the link has failed already.
    while (drain(sink, lanes_[number], burst) != 0) {
    }
  }
  link.failed.store(true, std::memory_order_release);
  {
    const std::lock_guard guard(mutex_);
    const auto current = current_links_.find(key_of(link.peer));
    if (current != current_links_.end() && current->second == &link) current_links_.erase(current);
  }
  if (number != no_lane) {
    link.receive_lane = no_lane;
    // Whoever misbehaves may go on writing: nobody else gets that lane as long as it lives.
    if (cause == Cause::gone)
      free_lane(number);
    else
      retire_lane(number);
  }
  if (link.segment != nullptr) link.segment->abandon(link.send_lane, segment_->nonce());
  peers_failed_.add(1);
  sink.on_peer_failed(link);
}

void ShmTransport::reclaim_some_lanes(MessageSink& sink) noexcept {
  unsigned checks = 0;
  for (uint32_t looked = 0; looked < lanes_.size() && checks < reclaim_checks; ++looked) {
    const uint32_t lane = next_reclaim_;
    next_reclaim_ = lane + 1 == lanes_.size() ? 0 : lane + 1;
    if (reclaim_lane(sink, lane)) ++checks;
  }
}

// True if that took system calls.
bool ShmTransport::reclaim_lane(MessageSink& sink, uint32_t number) noexcept {
  std::atomic<uint64_t>& owner = segment_->entry(number).owner;
  uint64_t word = owner.load(std::memory_order_acquire);
  const auto state = static_cast<LaneState>(word & lane_state_mask);
  if (state == LaneState::free) return false;
  const ReceiveLane& lane = lanes_[number];
  if (lane.state == ReceiveState::active) {
    ShmLink& link = *lane.link;
    if (link.segment == nullptr || !link.segment->owner_alive()) fail_link(sink, link, Cause::gone);
    return true;
  }
  // Claims are finished within microseconds, and new ones are looked at in the next poll.
  if (lane.state == ReceiveState::unused && state != LaneState::claiming) return false;
  if (nonce_is_alive(word & ~lane_state_mask)) return true;
  if (lane.state == ReceiveState::refused)
    free_lane(number);
  else
    owner.compare_exchange_strong(word, 0, std::memory_order_release);
  return true;
}

}  // namespace lintel

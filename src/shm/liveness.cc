// Peers that finished or died: taking what they still sent, reporting them, reclaiming their lanes.
// Connection path; makes system calls.
#include "shm/leftovers.h"
#include "shm/shm_transport.h"

namespace lintel {

// System calls spent per check on links and on lanes that nobody waits for.
static constexpr unsigned unwatched_checks = 4;

void ShmTransport::check_peers(MessageSink& sink, Link* const* watch, unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) check_link(sink, static_cast<ShmLink&>(*watch[i]));
  check_unwatched_links(sink);
  reclaim_lanes();
  if (claims_postponed_) look_for_claims(sink);
}

void ShmTransport::check_link(MessageSink& sink, ShmLink& link) noexcept {
  if (link.failure_reported) return;
  if (link.segment == nullptr || !link.segment->owner_alive()) fail_link(sink, link, Cause::gone);
}

// Peers that finished say so in their segments; those that died are asked after in turn.
void ShmTransport::check_unwatched_links(MessageSink& sink) noexcept {
  for (ShmLink* link = all_links_.load(std::memory_order_acquire); link != nullptr;
       link = link->next) {
    if (link->segment != nullptr && link->segment->owner_finished()) check_link(sink, *link);
  }
  unsigned checks = 0;
  if (next_checked_ == nullptr) next_checked_ = all_links_.load(std::memory_order_acquire);
  for (; next_checked_ != nullptr && checks < unwatched_checks;
       next_checked_ = next_checked_->next) {
    if (next_checked_->failure_reported) continue;
    check_link(sink, *next_checked_);
    ++checks;
  }
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

void ShmTransport::reclaim_lanes() noexcept {
  unsigned checks = 0;
  for (uint32_t looked = 0; looked < lanes_.size() && checks < unwatched_checks; ++looked) {
    const uint32_t lane = next_reclaim_;
    next_reclaim_ = lane + 1 == lanes_.size() ? 0 : lane + 1;
    if (reclaim_lane(lane)) ++checks;
  }
}

// Lanes without a link: refused, or claimed by halves. True if looking took system calls.
bool ShmTransport::reclaim_lane(uint32_t number) noexcept {
  std::atomic<uint64_t>& owner = segment_->entry(number).owner;
  uint64_t word = owner.load(std::memory_order_acquire);
  const auto state = static_cast<LaneState>(word & lane_state_mask);
  const ReceiveState reading = lanes_[number].state;
  const bool half_made = reading == ReceiveState::unused && state == LaneState::claiming;
  if (reading != ReceiveState::refused && !half_made) return false;
  if (nonce_is_alive(word & ~lane_state_mask)) return true;
  if (half_made)
    owner.compare_exchange_strong(word, 0, std::memory_order_release);
  else
    free_lane(number);
  return true;
}

}  // namespace lintel

// Failing a link, asking whether peers live, and reclaiming lanes. Connection path.
#include "shm/link_ends.h"

#include <algorithm>

#include "shm/segment_directory.h"
#include "util/without_cancellation.h"

namespace lintel {

void LinkFailures::fail(MessageSink& sink, ShmLink& link, Cause cause) noexcept {
  if (link.failure_reported) return;
  const WithoutCancellation scope;
  link.failure_reported = true;
  const uint32_t number = link.receive_lane;
  // A malformed message among the last ones ends the draining, since the link has failed already.
  if (cause == Cause::gone && number != no_lane) lanes_.drain(sink, number);
  link.failure.reason = cause == Cause::gone ? "its process is gone or has closed its interface"
                                             : "it sent a malformed message";
  link.failed.store(true, std::memory_order_release);
  if (offers_.pending() == &link) offers_.give_up(sink);
  if (number != no_lane) {
    link.receive_lane = no_lane;
    if (cause == Cause::gone)
      lanes_.free(number);
    else
      lanes_.refuse(number);
  }
  ++count_;
  // The core takes the send lock of the peer there: afterwards no thread sends.
  sink.on_peer_failed(link);
  links_.release(link);
}

void LivenessChecks::check(MessageSink& sink, Link* const* watch, unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) check_link(sink, static_cast<ShmLink&>(*watch[i]));
  check_finished(sink);
  check_in_turn(sink, unwatched_checks);
  check_after_new(sink);
  reclaim_lanes();
}

void LivenessChecks::check_after_new(MessageSink& sink) noexcept {
  constexpr uint32_t most_at_once = 16;  // the next look goes on
  const uint32_t made = std::min(links_.made() - made_seen_, most_at_once);
  made_seen_ += made;
  if (made == 0) return;
  const WithoutCancellation scope;
  for (uint32_t i = 0; i < made; ++i) check_in_turn(sink, checks_per_new_link);
}

void LivenessChecks::check_link(MessageSink& sink, ShmLink& link) noexcept {
  if (link.failure_reported) return;
  if (link.segment == nullptr || !link.segment->owner_alive())
    failures_.fail(sink, link, LinkFailures::Cause::gone);
}

// Peers that finished say so in their segments.
void LivenessChecks::check_finished(MessageSink& sink) noexcept {
  for (ShmLink *link = links_.first(), *next = nullptr; link != nullptr; link = next) {
    next = link->next;  // a link that fails is listed no more
    if (link->segment != nullptr && link->segment->owner_finished()) check_link(sink, *link);
  }
}

// Checks some links in turn, to find peers that died without closing their segment.
void LivenessChecks::check_in_turn(MessageSink& sink, unsigned most) noexcept {
  links_.begin_turn();
  for (; most > 0; --most) {
    ShmLink* const link = links_.next_in_turn();
    if (link == nullptr) return;
    check_link(sink, *link);
  }
}

void LivenessChecks::reclaim_lanes() noexcept {
  unsigned checks = 0;
  for (uint32_t looked = 0; looked < lanes_.count() && checks < unwatched_checks; ++looked) {
    const uint32_t lane = next_reclaimed_;
    next_reclaimed_ = lane + 1 == lanes_.count() ? 0 : lane + 1;
    if (reclaim_lane(lane)) ++checks;
  }
}

// Lanes without a link: refused, or claimed by halves. True if looking took system calls.
bool LivenessChecks::reclaim_lane(uint32_t number) noexcept {
  std::atomic<uint64_t>& owner = segment_.entry(number).owner;
  uint64_t word = owner.load(std::memory_order_acquire);
  const auto state = static_cast<LaneState>(word & lane_state_mask);
  const ReceiveLanes::State reading = lanes_.state(number);
  const bool half_made = reading == ReceiveLanes::State::unused && state == LaneState::claiming;
  if (reading != ReceiveLanes::State::refused && !half_made) return false;
  if (nonce_is_alive(word & ~lane_state_mask)) return true;
  if (!half_made)
    lanes_.free(number);
  else if (owner.compare_exchange_strong(word, 0, std::memory_order_release))
    segment_.header().lanes_freed.fetch_add(1, std::memory_order_release);
  return true;
}

}  // namespace lintel

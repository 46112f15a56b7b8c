// Finding and making links. Connection path.
#include "shm/shm_links.h"

#include <new>
#include <utility>

#include "transport/process_key.h"
#include "util/assert.h"
#include "util/clock.h"
#include "util/lock.h"
#include "util/text.h"
#include "util/without_cancellation.h"

namespace lintel {

ShmLinks::~ShmLinks() {
  // A forked child does not close the connections of its parent.
  if (!own_.created_by_this_process()) return;
  for (const auto& link : owned_)
    if (link->sender.lane() != no_lane && !link->failed.load(std::memory_order_relaxed))
      link->segment->close_lane(link->sender.lane(), own_.nonce());
}

ShmLink* ShmLinks::find(ProcessId peer) const noexcept {
  const auto found = places_.find(key_of(peer));
  ShmLink* const link = found == places_.end() ? nullptr : found->second.current;
  return link == nullptr || link->failed.load(std::memory_order_relaxed) ? nullptr : link;
}

// Makes a link, or reuses one. Its state about lanes was reset when it was released.
ShmLink& ShmLinks::make(ProcessId peer, uint64_t nonce, std::unique_ptr<PeerSegment> segment) {
  Place& place = places_[key_of(peer)];
  if (place.unused == nullptr)
    place.unused = owned_.emplace_back(std::make_unique<ShmLink>()).get();
  ShmLink& link = *std::exchange(place.unused, place.unused->next);
  LINTEL_ASSERT(link.segment == nullptr && link.sender.lane() == no_lane);
  LINTEL_ASSERT(link.receive_lane == no_lane);
  link.peer = peer;
  link.nonce = nonce;
  link.uid = segment == nullptr ? own_.header().identity.uid : segment->uid();
  if (segment != nullptr && reach_memory_) link.memory = PeerMemory(segment->identity());
  link.segment = std::move(segment);
  link.lane_wait = LaneWait();
  link.announced = false;
  link.failure_reported = false;
  std::atomic_ref<void*>(link.context).store(nullptr, std::memory_order_relaxed);
  link.failed.store(false, std::memory_order_release);
  return link;
}

ShmLink* ShmLinks::add(ShmLink& link) noexcept {
  places_.find(key_of(link.peer))->second.current = &link;
  ShmLink* const second = listed_.load(std::memory_order_relaxed);
  link.previous = nullptr;
  link.next = second;
  if (second != nullptr) second->previous = &link;
  listed_.store(&link, std::memory_order_release);
  made_.fetch_add(1, std::memory_order_relaxed);
  return &link;
}

// Makes a link that is not listed available for reuse.
void ShmLinks::give_back(ShmLink& link) noexcept {
  Place& place = places_.find(key_of(link.peer))->second;
  if (place.current == &link) place.current = nullptr;
  link.next = place.unused;
  place.unused = &link;
}

PeerSegment::ClaimStatus ShmLinks::claim_lane(ShmLink& link, std::string& reason) const {
  PeerSegment::Claim claim;
  const PeerSegment::ClaimStatus status =
      link.segment->claim_lane({own_.id(), own_.nonce()}, claim, reason);
  if (status != PeerSegment::ClaimStatus::claimed) return status;
  if (link.sender.attach(claim, *link.segment)) return status;
  link.segment->close_lane(claim.lane, own_.nonce());
  reason = "no memory";
  return PeerSegment::ClaimStatus::no_room;
}

ShmLink* ShmLinks::connect(ProcessId peer, std::string& reason) {
  // Hosts that share /dev/shm, as network namespaces of one machine do, are nodes of their own.
  if (peer.nid != own_.id().nid) return explained(nullptr, reason, "it is on another node");
  const LockGuard guard(mutex_);
  if (ShmLink* const known = find(peer)) return known;
  std::unique_ptr<PeerSegment> segment;
  if (PeerSegment::open(peer, job_hash_, segment, reason) != PeerSegment::Status::opened)
    return nullptr;
  if (!segment->owner_alive()) return explained(nullptr, reason, "the process has ended");
  const uint64_t nonce = segment->identity().nonce;
  ShmLink& link = make(peer, nonce, std::move(segment));
  // Before the link can be found by others, so that no send lock is needed yet.
  const PeerSegment::ClaimStatus claim = claim_lane(link, reason);
  if (claim == PeerSegment::ClaimStatus::claimed || claim == PeerSegment::ClaimStatus::no_lane)
    return add(link);
  link.memory = PeerMemory();
  link.segment.reset();
  give_back(link);
  return nullptr;
}

SendStatus ShmLinks::attach(ShmLink& link) noexcept {
  const WithoutCancellation scope;
  if (link.segment == nullptr) return SendStatus::peer_failed;
  if (!link.lane_wait.may_claim(*link.segment, own_.nonce(), now_ns())) {
    set_waiting(link, true);
    return SendStatus::connecting;
  }
  PeerSegment::ClaimStatus status = PeerSegment::ClaimStatus::no_room;
  try {
    std::string reason;
    status = claim_lane(link, reason);
  } catch (const std::bad_alloc&) {  // another attempt follows later, as without room
  }
  const bool waits =
      status == PeerSegment::ClaimStatus::no_lane || status == PeerSegment::ClaimStatus::no_room;
  set_waiting(link, waits);
  return status == PeerSegment::ClaimStatus::claimed ? SendStatus::sent
         : waits                                     ? SendStatus::connecting
                                                     : SendStatus::peer_failed;
}

void ShmLinks::set_waiting(ShmLink& link, bool waits) noexcept {
  if (!link.lane_wait.set_waiting(waits)) return;
  if (waits)
    waiting_.fetch_add(1, std::memory_order_relaxed);
  else
    waiting_.fetch_sub(1, std::memory_order_relaxed);
}

// The lane may have been cleared and claimed by others as soon as it is returned.
void ShmLinks::return_lane(ShmLink& link) noexcept {
  const uint32_t lane = link.sender.lane();
  link.sender.detach();
  link.next_cell = nullptr;
  link.lane_wait.note_returned(lane);
  link.segment->return_lane(lane, own_.nonce());
}

ShmLinks::Acceptance ShmLinks::accept(ProcessId peer, uint64_t nonce) noexcept {
  const WithoutCancellation scope;
  try {
    return look_up(peer, nonce);
  } catch (const std::bad_alloc&) {
    return {Acceptance::Status::postponed, nullptr, nullptr, {}};
  }
}

ShmLinks::Acceptance ShmLinks::look_up(ProcessId peer, uint64_t nonce) {
  const auto refused = [](const char* reason) {
    return Acceptance{Acceptance::Status::refused, nullptr, nullptr, reason};
  };
  const LockGuard guard(mutex_);
  ShmLink* const known = find(peer);
  if (known != nullptr && known->nonce == nonce) {
    if (known->receive_lane != no_lane) return refused("it is connected already");
    return {Acceptance::Status::accepted, known, nullptr, {}};
  }
  if (peer == own_.id()) return refused("it claims to be this process");
  std::unique_ptr<PeerSegment> segment;
  std::string reason;
  switch (PeerSegment::open(peer, job_hash_, segment, reason)) {
    case PeerSegment::Status::opened:
      if (segment->identity().nonce == nonce) break;
      return refused("it is not that process");
    case PeerSegment::Status::absent:
      // The process has sent messages and finished. Its messages are delivered: only processes of
      // this user can have written them.
      break;
    case PeerSegment::Status::refused:
      return refused(reason.c_str());
    case PeerSegment::Status::failed:
      return {Acceptance::Status::postponed, nullptr, nullptr, {}};
  }
  return {Acceptance::Status::accepted, add(make(peer, nonce, std::move(segment))), known, {}};
}

void ShmLinks::release(ShmLink& link) noexcept {
  set_waiting(link, false);
  if (link.sender.lane() != no_lane) link.segment->close_lane(link.sender.lane(), own_.nonce());
  link.sender.detach();
  link.next_cell = nullptr;
  link.memory = PeerMemory();
  link.segment.reset();
  const LockGuard guard(mutex_);
  if (turn_ == &link) turn_ = link.next;
  if (link.next != nullptr) link.next->previous = link.previous;
  if (link.previous != nullptr)
    link.previous->next = link.next;
  else
    listed_.store(link.next, std::memory_order_relaxed);
  give_back(link);
}

}  // namespace lintel

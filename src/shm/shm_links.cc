// Finding and making links. Connection path.
#include "shm/shm_links.h"

#include <unistd.h>

#include <new>
#include <utility>

#include "util/without_cancellation.h"

namespace lintel {

ShmLinks::~ShmLinks() {
  // A forked child leaves the connections of its parent alone.
  if (!own_.created_by_this_process()) return;
  for (const auto& link : owned_)
    if (link->sender.lane() != no_lane && !link->failed.load(std::memory_order_relaxed))
      link->segment->close_lane(link->sender.lane(), own_.nonce());
}

ShmLink* ShmLinks::find(ProcessId peer) const noexcept {
  const auto found = current_.find(key_of(peer));
  return found == current_.end() || found->second->failed.load(std::memory_order_relaxed)
             ? nullptr
             : found->second;
}

ShmLink* ShmLinks::add(std::unique_ptr<ShmLink> link) {
  ShmLink* const raw = link.get();
  owned_.push_back(std::move(link));
  current_[key_of(raw->peer)] = raw;
  raw->next = all_.load(std::memory_order_relaxed);
  all_.store(raw, std::memory_order_release);
  return raw;
}

std::unique_ptr<ShmLink> ShmLinks::make(ProcessId peer, uint64_t nonce,
                                        std::unique_ptr<PeerSegment> segment) const {
  auto link = std::make_unique<ShmLink>();
  link->peer = peer;
  link->nonce = nonce;
  link->uid = segment == nullptr ? own_.header().identity.uid : segment->uid();
  if (segment != nullptr && reach_memory_) link->memory = PeerMemory(segment->identity());
  link->segment = std::move(segment);
  return link;
}

PeerSegment::ClaimStatus ShmLinks::claim_lane(ShmLink& link, std::string& reason) const {
  PeerSegment::Claim claim;
  const PeerSegment::ClaimStatus status =
      link.segment->claim_lane({own_.id(), own_.nonce(), getpid()}, claim, reason);
  if (status != PeerSegment::ClaimStatus::claimed) return status;
  if (link.sender.attach(claim, link.segment->doorbell())) return status;
  link.segment->close_lane(claim.lane, own_.nonce());
  reason = "no memory";
  return PeerSegment::ClaimStatus::no_room;
}

ShmLink* ShmLinks::connect(ProcessId peer, std::string& reason) {
  // Hosts that share /dev/shm, as network namespaces of one machine do, are nodes of their own.
  if (peer.nid != own_.id().nid) {
    reason = "it is on another node";
    return nullptr;
  }
  const std::lock_guard guard(mutex_);
  if (ShmLink* const known = find(peer)) return known;
  std::unique_ptr<PeerSegment> segment;
  if (PeerSegment::open(peer, job_hash_, segment, reason) != PeerSegment::Status::opened)
    return nullptr;
  if (!segment->owner_alive()) {
    reason = "the process has ended";
    return nullptr;
  }
  const uint64_t nonce = segment->identity().nonce;
  auto link = make(peer, nonce, std::move(segment));
  // Before the link can be found by others, so that no send lock is needed yet.
  if (claim_lane(*link, reason) != PeerSegment::ClaimStatus::claimed) return nullptr;
  return add(std::move(link));
}

SendStatus ShmLinks::attach(ShmLink& link) noexcept {
  const WithoutCancellation scope;
  if (link.segment == nullptr) return SendStatus::peer_failed;
  try {
    std::string reason;
    switch (claim_lane(link, reason)) {
      case PeerSegment::ClaimStatus::claimed:
        return SendStatus::sent;
      case PeerSegment::ClaimStatus::no_room:
        return SendStatus::connecting;
      case PeerSegment::ClaimStatus::gone:
        break;
    }
    return SendStatus::peer_failed;
  } catch (const std::bad_alloc&) {
    return SendStatus::connecting;
  }
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
  const std::lock_guard guard(mutex_);
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
      // It sent and finished before we looked. What it sent arrives all the same; only processes
      // of this user can have written it.
      break;
    case PeerSegment::Status::refused:
      return refused(reason.c_str());
    case PeerSegment::Status::failed:
      return {Acceptance::Status::postponed, nullptr, nullptr, {}};
  }
  return {Acceptance::Status::accepted, add(make(peer, nonce, std::move(segment))), known, {}};
}

void ShmLinks::release(ShmLink& link) const noexcept {
  if (link.segment == nullptr) return;
  if (link.sender.lane() != no_lane) link.segment->close_lane(link.sender.lane(), own_.nonce());
  link.sender.detach();
  link.memory = PeerMemory();
  link.segment.reset();
}

}  // namespace lintel

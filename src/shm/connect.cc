// Making contact with a peer that this process wants to send to. Connection path.
#include <unistd.h>

#include <utility>

#include "shm/shm_transport.h"

namespace lintel {

PeerSegment::Claimer ShmTransport::claimer() const noexcept {
  return {segment_->id(), segment_->nonce(), getpid()};
}

ShmLink* ShmTransport::find_link(ProcessId peer) const noexcept {
  const auto found = current_links_.find(key_of(peer));
  return found == current_links_.end() ? nullptr : found->second;
}

ShmLink* ShmTransport::add_link(std::unique_ptr<ShmLink> link) {
  ShmLink* const raw = link.get();
  owned_links_.push_back(std::move(link));
  current_links_[key_of(raw->peer)] = raw;
  raw->next = all_links_.load(std::memory_order_relaxed);
  all_links_.store(raw, std::memory_order_release);
  return raw;
}

PeerSegment::ClaimStatus ShmTransport::claim_send_lane(ShmLink& link, std::string& reason) {
  PeerSegment::Claim claim;
  const PeerSegment::ClaimStatus status = link.segment->claim_lane(claimer(), claim, reason);
  if (status != PeerSegment::ClaimStatus::claimed) return status;
  if (!link.producer.attach(claim.control, claim.geometry)) {
    link.segment->close_lane(claim.lane, segment_->nonce());
    reason = "no memory";
    return PeerSegment::ClaimStatus::no_room;
  }
  link.send_lane = claim.lane;
  return status;
}

Link* ShmTransport::connect(ProcessId peer, std::string* reason) {
  std::string ignored;
  std::string& why = reason != nullptr ? *reason : ignored;
  // Hosts that share /dev/shm, as network namespaces of one machine do, are nodes of their own.
  if (peer.nid != segment_->id().nid) {
    why = "it is on another node";
    return nullptr;
  }
  const std::lock_guard guard(mutex_);
  if (ShmLink* const known = find_link(peer)) return known;
  auto link = std::make_unique<ShmLink>();
  if (PeerSegment::open(peer, job_hash_, link->segment, why) != PeerSegment::Status::opened)
    return nullptr;
  if (!link->segment->owner_alive()) {
    why = "the process has ended";
    return nullptr;
  }
  // Before the link can be found by others, so that no send lock is needed yet.
  if (claim_send_lane(*link, why) != PeerSegment::ClaimStatus::claimed) return nullptr;
  link->peer = peer;
  link->uid = link->segment->uid();
  link->nonce = link->segment->identity().nonce;
  link->peer_doorbell = &link->segment->doorbell();
  return add_link(std::move(link));
}

// The first message to a peer that made contact with us.
SendStatus ShmTransport::attach_and_send(ShmLink& link, const MessageHeader& header,
                                         const Piece* pieces, unsigned count) noexcept {
  if (link.segment == nullptr) return SendStatus::peer_failed;
  try {
    std::string reason;
    switch (claim_send_lane(link, reason)) {
      case PeerSegment::ClaimStatus::claimed:
        return send(link, header, pieces, count);
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

}  // namespace lintel

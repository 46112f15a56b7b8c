// Peers that make contact: finding the lanes that they claimed in our segment, checking who they
// are, and giving lanes back. Connection path, within poll().
#include <algorithm>
#include <cstring>
#include <new>

#include "shm/shm_transport.h"
#include "util/log.h"

namespace lintel {

void ShmTransport::look_for_claims(MessageSink& sink) noexcept {
  generation_seen_ = segment_->header().lane_generation.load(std::memory_order_acquire);
  claims_postponed_ = false;
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    const uint64_t owner = segment_->entry(lane).owner.load(std::memory_order_acquire);
    const auto state = static_cast<LaneState>(owner & lane_state_mask);
    if (state != LaneState::ready && state != LaneState::closing) continue;
    if (lanes_[lane].state == ReceiveState::unused) accept_claim(sink, lane);
    if (state != LaneState::closing) continue;
    if (lanes_[lane].state == ReceiveState::active)
      fail_link(sink, *lanes_[lane].link, Cause::gone);
    else if (lanes_[lane].state == ReceiveState::refused)
      free_lane(lane);
  }
}

void ShmTransport::accept_claim(MessageSink& sink, uint32_t number) noexcept {
  const LaneEntry& entry = segment_->entry(number);
  const uint64_t nonce = entry.owner.load(std::memory_order_acquire) & ~lane_state_mask;
  const ProcessId peer{entry.nid, entry.pid};
  ReceiveLane& lane = lanes_[number];
  ShmLink* replaced = nullptr;
  ShmLink* link = nullptr;
  std::string reason;
  try {
    link = link_for_claim(peer, nonce, replaced, reason);
  } catch (const std::bad_alloc&) {
    claims_postponed_ = true;
  }
  if (link == nullptr) {
    // Nobody is refused because this process is short of descriptors or memory.
    if (claims_postponed_) return;
    lane.state = ReceiveState::refused;
    links_refused_.add(1);
    static std::atomic<bool> said{false};
    log_once(said, LogLevel::warn, "shm: refused a connection from nid 0x%x pid %u: %s", peer.nid,
             peer.pid, reason.c_str());
    return;
  }
  if (replaced != nullptr) {
    const bool lives = replaced->segment != nullptr && replaced->segment->owner_alive();
    fail_link(sink, *replaced, lives ? Cause::misbehaved : Cause::gone);
  }
  lane.state = ReceiveState::active;
  lane.link = link;
  lane.consumer.attach(segment_->lane(number), segment_->geometry().place(number).geometry);
  active_lanes_.push_back(number);
  make_hot(lane);
  link->receive_lane = number;
  if (link->announced) return;
  link->announced = true;
  // A link that connect() made has its context already, and its owner may be reading it.
  void* const context = sink.on_new_link(*link);
  if (link->context != context) link->context = context;
}

// The link of the process that says it is `peer` with `nonce`; nullptr: it is not. `replaced` is
// the link of an earlier process with that address.
ShmLink* ShmTransport::link_for_claim(ProcessId peer, uint64_t nonce, ShmLink*& replaced,
                                      std::string& reason) {
  const std::lock_guard guard(mutex_);
  ShmLink* const known = find_link(peer);
  if (peer == segment_->id() && (known == nullptr || known->nonce != nonce)) {
    reason = "it claims to be this process";
    return nullptr;
  }
  if (known != nullptr && known->nonce == nonce) {
    if (known->receive_lane == no_lane) return known;
    reason = "it is connected already";
    return nullptr;
  }
  auto link = std::make_unique<ShmLink>();
  switch (PeerSegment::open(peer, job_hash_, link->segment, reason)) {
    case PeerSegment::Status::opened:
      if (link->segment->identity().nonce == nonce) break;
      reason = "it is not that process";
      return nullptr;
    case PeerSegment::Status::absent:
      // It sent and finished before we looked. What it sent arrives all the same; only processes
      // of this user can have written it.
      break;
    case PeerSegment::Status::refused:
      return nullptr;
    case PeerSegment::Status::failed:
      claims_postponed_ = true;
      return nullptr;
  }
  link->peer = peer;
  link->nonce = nonce;
  link->uid = segment_->header().identity.uid;
  if (link->segment != nullptr) {
    link->uid = link->segment->uid();
    link->peer_doorbell = &link->segment->doorbell();
  }
  replaced = known;
  return add_link(std::move(link));
}

void ShmTransport::stop_reading(uint32_t number) noexcept {
  ReceiveLane& lane = lanes_[number];
  if (lane.hot) make_cold(lane);
  const auto active = std::find(active_lanes_.begin(), active_lanes_.end(), number);
  if (active != active_lanes_.end()) {
    *active = active_lanes_.back();
    active_lanes_.pop_back();
  }
  lane = ReceiveLane{};
}

// Whoever claimed the lane writes to it no more.
void ShmTransport::free_lane(uint32_t number) noexcept {
  stop_reading(number);
  if (!segment_->clear_lane(number))
    std::memset(static_cast<void*>(segment_->lane(number)), 0,
                segment_->geometry().place(number).length_bytes);
  segment_->entry(number).owner.store(0, std::memory_order_release);
}

void ShmTransport::retire_lane(uint32_t number) noexcept {
  stop_reading(number);
  lanes_[number].state = ReceiveState::refused;
}

}  // namespace lintel

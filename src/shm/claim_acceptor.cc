// Accepting and refusing claims. Connection path.
#include "shm/claim_acceptor.h"

#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

void ClaimAcceptor::look(MessageSink& sink) noexcept {
  generation_seen_ = segment_.header().lane_generation.load(std::memory_order_acquire);
  postponed_ = false;
  for (uint32_t lane = 0; lane < lanes_.count(); ++lane) look_at(sink, lane);
}

void ClaimAcceptor::look_at(MessageSink& sink, uint32_t lane) noexcept {
  const uint64_t owner = segment_.entry(lane).owner.load(std::memory_order_acquire);
  const auto state = static_cast<LaneState>(owner & lane_state_mask);
  const bool in_use = state == LaneState::ready || state == LaneState::recalled;
  const bool ended = state == LaneState::closing || state == LaneState::returned;
  if (!in_use && !ended) return;
  if (lanes_.state(lane) == ReceiveLanes::State::unused) accept(sink, lane);
  if (!ended) return;
  if (lanes_.state(lane) == ReceiveLanes::State::refused) {
    lanes_.free(lane);
  } else if (lanes_.state(lane) == ReceiveLanes::State::active) {
    if (state == LaneState::closing)
      failures_.fail(sink, *lanes_.link(lane), LinkFailures::Cause::gone);
    else
      take_back(sink, lane);
  }
}

// The link stays; its peer claims another lane for its next message, after this one is free.
void ClaimAcceptor::take_back(MessageSink& sink, uint32_t number) noexcept {
  ShmLink& link = *lanes_.link(number);
  lanes_.drain(sink, number);
  if (link.receive_lane != number) return;  // a malformed message ended the link
  link.receive_lane = no_lane;
  lanes_.free(number);
}

void ClaimAcceptor::accept(MessageSink& sink, uint32_t number) noexcept {
  const LaneEntry& entry = segment_.entry(number);
  const uint64_t nonce = entry.owner.load(std::memory_order_acquire) & ~lane_state_mask;
  const ProcessId peer{entry.nid, entry.pid};
  if (!lanes_.prepare(number)) {
    postponed_ = true;
    return;
  }
  const ShmLinks::Acceptance acceptance = links_.accept(peer, nonce);
  if (acceptance.status == ShmLinks::Acceptance::Status::postponed) {
    postponed_ = true;
    return;
  }
  if (acceptance.status == ShmLinks::Acceptance::Status::refused) {
    lanes_.refuse(number);
    ++refused_;
    static std::atomic<bool> said{false};
    log_once(said, LogLevel::warn, "shm: refused a connection from %s: %s",
             ProcessText(peer.nid, peer.pid).c_str(), acceptance.reason.c_str());
    return;
  }
  if (ShmLink* const replaced = acceptance.replaced) {
    const bool lives = replaced->segment != nullptr && replaced->segment->owner_alive();
    failures_.fail(sink, *replaced,
                   lives ? LinkFailures::Cause::misbehaved : LinkFailures::Cause::gone);
  }
  ShmLink& link = *acceptance.link;
  lanes_.activate(number, link);
  link.receive_lane = number;
  if (link.announced) return;
  link.announced = true;
  // A link that connect() made has its context already, and its owner may be reading it.
  void* const context = sink.on_new_link(link);
  if (link.context != context) link.context = context;
}

}  // namespace lintel

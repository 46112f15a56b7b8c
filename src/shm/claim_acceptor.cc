// Accepting and refusing claims. Connection path.
#include "shm/claim_acceptor.h"

#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

void ClaimAcceptor::look(MessageSink& sink) noexcept {
  generation_seen_ = segment_.header().lane_generation.load(std::memory_order_acquire);
  postponed_ = false;
  for (uint32_t lane = 0; lane < lanes_.count(); ++lane) {
    const uint64_t owner = segment_.entry(lane).owner.load(std::memory_order_acquire);
    const auto state = static_cast<LaneState>(owner & lane_state_mask);
    if (state != LaneState::ready && state != LaneState::closing) continue;
    if (lanes_.state(lane) == ReceiveLanes::State::unused) accept(sink, lane);
    if (state != LaneState::closing) continue;
    if (lanes_.state(lane) == ReceiveLanes::State::active)
      failures_.fail(sink, *lanes_.link(lane), LinkFailures::Cause::gone);
    else if (lanes_.state(lane) == ReceiveLanes::State::refused)
      lanes_.free(lane);
  }
}

void ClaimAcceptor::accept(MessageSink& sink, uint32_t number) noexcept {
  const LaneEntry& entry = segment_.entry(number);
  const uint64_t nonce = entry.owner.load(std::memory_order_acquire) & ~lane_state_mask;
  const ProcessId peer{entry.nid, entry.pid};
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

// Progress: what the holder of the poll token does in one round, and how work reaches it.
// Message path.
#include "core/operations/plain_put.h"
#include "core/operations/target.h"
#include "core/progress/physical_interface.h"
#include "core/progress/wait.h"
#include "util/clock.h"

namespace lintel {

namespace {
constexpr unsigned poll_budget = 32;
// A caller that polls in passing does not stay for long.
constexpr unsigned rounds_in_passing = 4;
constexpr uint64_t deliveries_between_polls = 16;
}  // namespace

// The flag is cleared before the transport is polled: a send after that sets it again.
unsigned PhysicalInterface::poll_in_process_sends() noexcept {
  if (!in_process_sends_.exchange(false, std::memory_order_acquire)) return 0;
  polled_transport_ = in_process_transport_;
  const unsigned handled = in_process_transport_->poll(*this, poll_budget);
  if (handled != 0) in_process_sends_.store(true, std::memory_order_relaxed);
  return handled;
}

unsigned PhysicalInterface::poll_once() noexcept {
  token_.begin_round();
  unsigned handled = 0;
  if (in_process_sends_.load(std::memory_order_relaxed)) [[unlikely]]
    handled = poll_in_process_sends();
  for (unsigned i = 0; i < polled_count_; ++i) {
    Transport& transport = *polled_[i].transport;
    polled_transport_ = &transport;
    const unsigned got = transport.poll(*this, poll_budget);
    if (got == 0) continue;
    handled += got;
    if (polled_[i].by_system_call) passing_.note_costly();
  }
  if (anything_queued()) [[unlikely]]
    flush_all_queues();
  if (active_transfers_ != nullptr) [[unlikely]]
    handled += advance_transfers();
  if (peers_unreleased_ != nullptr) [[unlikely]]
    handled += end_released_transfers();
  poll_counters.polls.increment();
  if (handled != 0) poll_counters.polls_with_work.increment();
  if (++polls_since_clock_ >= polls_between_clock_looks) [[unlikely]] {
    polls_since_clock_ = 0;
    check_peers();
  }
  token_.end_round();
  return handled;
}

void PhysicalInterface::kick() noexcept {
  if (!progress_by_callers_ || !token_.try_acquire()) {
    // Whoever holds the token polls, unless it sleeps.
    doorbell_->ring_if_sleeping();
    return;
  }
  token_.note_application_poll();
  for (unsigned i = 0; i < rounds_in_passing && poll_once() != 0; ++i) {
  }
  const bool more = anything_queued() || active_transfers_ != nullptr;
  token_.release();
  if (more) doorbell_->ring_if_sleeping();
}

void PhysicalInterface::kick_in_process() noexcept {
  note_in_process_send();
  kick();
}

bool PhysicalInterface::begin_delivery_to_self(const Peer& peer) noexcept {
  if (!progress_by_callers_ || !token_.try_acquire()) return false;
  if (in_process_sends_.load(std::memory_order_acquire) ||
      peer.queue_length.load(std::memory_order_relaxed) != 0 ||
      peer.failed.load(std::memory_order_relaxed)) {
    token_.release();
    return false;
  }
  token_.begin_round();
  return true;
}

bool PhysicalInterface::deliver_to_self(Peer& peer, const InboundMessage& message) noexcept {
  if (!deliver_plain_put(*this, peer, message)) return false;
  received.count(message.header.kind, message.payload_length);
  return true;
}

void PhysicalInterface::end_delivery_to_self() noexcept {
  token_.end_round();
  // What the delivery has set off: triggered operations, answers that are no acknowledgement. And a
  // process that sends to itself all the time still hears others.
  const bool polls_others = token_.rounds() / 2 % deliveries_between_polls == 0;
  const bool more = in_process_sends_.load(std::memory_order_relaxed) || anything_queued() ||
                    active_transfers_ != nullptr;
  token_.release();
  if (more || polls_others) [[unlikely]]
    kick();
}

unsigned PhysicalInterface::advance_transfers() noexcept {
  // One slice of each: a transfer of gigabytes must not keep messages waiting.
  Transfer* transfer = active_transfers_;
  active_transfers_ = nullptr;
  unsigned advanced = 0;
  while (transfer != nullptr) {
    Transfer* next = transfer->next_active;
    Peer& peer = *transfer->peer.load(std::memory_order_relaxed);
    advance_transfer(*this, *transfer);
    flush_acknowledgements(peer);
    ++advanced;
    transfer = next;
  }
  return advanced;
}

void PhysicalInterface::activate(Transfer& transfer) noexcept {
  transfer.next_active = active_transfers_;
  active_transfers_ = &transfer;
}

// Of each peer in the order sent, as they are released.
void PhysicalInterface::await_release(Transfer& transfer) noexcept {
  Peer& peer = *transfer.peer.load(std::memory_order_relaxed);
  transfer.next_active = nullptr;
  if (peer.unreleased_head == nullptr)
    peer.unreleased_head = &transfer;
  else
    peer.unreleased_tail->next_active = &transfer;
  peer.unreleased_tail = &transfer;
  if (peer.unreleased_listed) return;
  peer.unreleased_listed = true;
  peer.next_unreleased = peers_unreleased_;
  peers_unreleased_ = &peer;
}

unsigned PhysicalInterface::end_released_transfers() noexcept {
  unsigned ended = 0;
  for (Peer** link = &peers_unreleased_; *link != nullptr;) {
    Peer& peer = **link;
    while (peer.unreleased_head != nullptr &&
           peer.transport->payloads_released(*peer.link, peer.unreleased_head->release_mark)) {
      Transfer& transfer = *peer.unreleased_head;
      peer.unreleased_head = transfer.next_active;
      transfer.stays = false;
      advance_transfer(*this, transfer);
      ++ended;
    }
    if (peer.unreleased_head != nullptr) {
      link = &peer.next_unreleased;
    } else {
      *link = peer.next_unreleased;
      peer.unreleased_listed = false;
    }
  }
  return ended;
}

bool PhysicalInterface::anything_released() const noexcept {
  for (const Peer* peer = peers_unreleased_; peer != nullptr; peer = peer->next_unreleased)
    if (peer->unreleased_head == nullptr ||
        peer->transport->payloads_released(*peer->link, peer->unreleased_head->release_mark))
      return true;
  return false;
}

bool PhysicalInterface::arm_transports() noexcept {
  const bool blocked_senders = anything_queued();
  for (const std::unique_ptr<Transport>& transport : transports_)
    if (!transport->arm(blocked_senders)) return false;
  return active_transfers_ == nullptr && !anything_released();
}

void PhysicalInterface::disarm_transports() noexcept {
  for (const std::unique_ptr<Transport>& transport : transports_) transport->disarm();
}

int64_t PhysicalInterface::sleep_limit_ns() const noexcept {
  int64_t limit_ns = futex_no_timeout;
  for (const std::unique_ptr<Transport>& transport : transports_) {
    const int64_t wish_ns = transport->sleep_limit_ns();
    if (wish_ns >= 0 && (limit_ns < 0 || wish_ns < limit_ns)) limit_ns = wish_ns;
  }
  const auto check_ns = static_cast<int64_t>(peer_check_interval_ns_);
  if (limit_ns >= 0 && limit_ns <= check_ns) return limit_ns;
  for (uint32_t i = 0; i < peers_.size(); ++i) {
    const Peer& peer = peers_.at(i);
    if (!peer.failed.load(std::memory_order_relaxed) && peer.is_awaited()) return check_ns;
  }
  return limit_ns;
}

void PhysicalInterface::check_peers() noexcept {
  const uint64_t now = now_ns();
  if (now < next_peer_check_ns_) return;
  next_peer_check_ns_ = now + peer_check_interval_ns_;
  constexpr unsigned watched_at_once = 64;
  Link* watch[watched_at_once];
  for (const std::unique_ptr<Transport>& transport : transports_) {
    polled_transport_ = transport.get();
    unsigned count = 0;
    for (uint32_t i = 0; i < peers_.size(); ++i) {
      Peer& peer = peers_.at(i);
      if (peer.failed.load(std::memory_order_acquire) || peer.transport != transport.get() ||
          !peer.is_awaited())
        continue;
      watch[count++] = peer.link;
      if (count == watched_at_once) {
        transport->check_peers(*this, watch, count);
        count = 0;
      }
    }
    transport->check_peers(*this, watch, count);
  }
}

}  // namespace lintel

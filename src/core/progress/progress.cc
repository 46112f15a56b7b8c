// Progress: what the holder of the poll token does in one round, and how work reaches it.
// Message path.
#include "core/operations/flush_queues.h"
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
  if (!in_process_sends_.take()) return 0;
  polled_transport_ = in_process_transport_;
  const unsigned handled = in_process_transport_->poll(*this, poll_budget);
  if (handled != 0) in_process_sends_.set();
  return handled;
}

unsigned PhysicalInterface::poll_once() noexcept {
  token_.begin_round();
  unsigned handled = 0;
  if (in_process_sends_.is_set()) [[unlikely]]
    handled = poll_in_process_sends();
  for (unsigned i = 0; i < polled_count_; ++i) {
    Transport& transport = *polled_[i].transport;
    polled_transport_ = &transport;
    const unsigned got = transport.poll(*this, poll_budget);
    if (got == 0) continue;
    handled += got;
    if (polled_[i].by_system_call) passing_.note_costly();
  }
  if (queues_.any()) [[unlikely]]
    flush_queues(*this);
  if (transfers_.has_active()) [[unlikely]]
    handled += advance_transfers(*this);
  if (transfers_.awaits_release()) [[unlikely]]
    handled += end_released_transfers(*this);
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
  const bool more = queues_.any() || transfers_.has_active();
  token_.release();
  if (more) doorbell_->ring_if_sleeping();
}

void PhysicalInterface::kick_in_process() noexcept {
  in_process_sends_.set();
  kick();
}

bool PhysicalInterface::begin_delivery_to_self(const Peer& peer) noexcept {
  if (!progress_by_callers_ || !token_.try_acquire()) return false;
  if (in_process_sends_.is_set() || peer.queue_length.load(std::memory_order_relaxed) != 0 ||
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
  const bool more = in_process_sends_.is_set() || queues_.any() || transfers_.has_active();
  token_.release();
  if (more || polls_others) [[unlikely]]
    kick();
}

bool PhysicalInterface::arm_transports() noexcept {
  const bool blocked_senders = queues_.any();
  for (const std::unique_ptr<Transport>& transport : transports_)
    if (!transport->arm(blocked_senders)) return false;
  return !transfers_.has_active() && !transfers_.anything_released();
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
  return peers_.awaits_any() ? check_ns : limit_ns;
}

void PhysicalInterface::check_peers() noexcept {
  const uint64_t now = now_ns();
  if (now < next_peer_check_ns_) return;
  next_peer_check_ns_ = now + peer_check_interval_ns_;
  peers_.check_awaited([&](Transport& transport, Link* const* links, unsigned count) {
    polled_transport_ = &transport;
    transport.check_peers(*this, links, count);
  });
}

}  // namespace lintel

#include "core/progress/poller.h"

#include "util/asymmetric_fence.h"
#include "util/clock.h"
#include "util/without_cancellation.h"

namespace lintel {

namespace {
// A caller that polls in passing does not stay for long.
constexpr unsigned rounds_in_passing = 4;
}  // namespace

void Poller::open(Doorbell& doorbell, bool by_callers, uint64_t peer_check_interval_ns) noexcept {
  doorbell_ = &doorbell;
  by_callers_ = by_callers;
  peer_check_interval_ns_ = peer_check_interval_ns;
  doorbell.full_fences.store(asymmetric_fence_available() ? 0 : 1, std::memory_order_relaxed);
  gate_.set_doorbell(&doorbell);
}

unsigned Poller::poll_once() noexcept { return run_round(); }

[[gnu::noinline]] unsigned Poller::do_work() noexcept {
  static_cast<void>(work_due_.take());
  if (peer_check_due_.is_set()) check_peers();
  return work_.advance();
}

void Poller::check_peers() noexcept {
  static_cast<void>(peer_check_due_.take());
  const uint64_t now = now_ns();
  // Several threads may have found it due, one after another.
  if (now < next_peer_check_ns_.load(std::memory_order_relaxed)) return;
  next_peer_check_ns_.store(now + peer_check_interval_ns_, std::memory_order_relaxed);
  const WithoutCancellation scope;
  work_.check_peers();
}

void Poller::kick() noexcept {
  if (!by_callers_ || !token_.try_acquire()) {
    // The holder of the token polls, unless it sleeps.
    doorbell_->ring_if_sleeping();
    return;
  }
  for (unsigned i = 0; i < rounds_in_passing && poll_once() != 0; ++i)
    if (!transports_.in_process_sends().is_set() && !work_due_.is_set()) break;
  // Messages to the own process that are left have woken a poller: who sends one polls or rings.
  const bool more = work_due_.is_set();
  token_.release();
  if (more) doorbell_->ring_if_sleeping();
}

bool Poller::prepare_sleep() noexcept {
  if (!transports_.arm(work_.sends_wait()) || work_.is_ready()) return false;
  if (work_.awaits_peers()) work_.wake_awaited_peers();
  return true;
}

// An operation that another thread starts rings no doorbell, so the sleep ends in time for a check
// even if no operation waits for a peer yet.
int64_t Poller::sleep_limit_ns() const noexcept {
  const int64_t limit_ns = transports_.sleep_limit_ns();
  const auto check_ns = static_cast<int64_t>(peer_check_interval_ns_);
  if (limit_ns >= 0 && limit_ns <= check_ns) return limit_ns;
  return work_.has_peers() ? check_ns : limit_ns;
}

void Poller::sleep(uint32_t announced, int64_t timeout_ns) noexcept {
  counters.sleeps.increment();
  doorbell_->sleep(announced, timeout_ns);
  counters.wakeups.increment();
}

}  // namespace lintel

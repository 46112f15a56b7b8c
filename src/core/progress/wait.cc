// The slow part of waiting: yielding, sleeping, handing over. Reached after microseconds of idle
// polls.
#include "core/progress/wait.h"

#include <sched.h>

#include "core/progress/processor_load.h"

namespace lintel {

std::atomic<bool> portals_aborted{false};

void Waiter::try_token() noexcept {
  if (!poller_.polls_by_callers()) return;
  if (token_.exclusively_wanted()) return;
  holds_token_ = token_.try_acquire();
  if (holds_token_ && wants_token_) {
    token_.want_no_more();
    wants_token_ = false;
  } else if (!holds_token_ && !wants_token_) {
    token_.want();
    wants_token_ = true;
  }
}

void Waiter::leave() noexcept {
  if (wants_token_) token_.want_no_more();
  wants_token_ = false;
  if (holds_token_) {
    polling.assert_held();
    token_.release();
    holds_token_ = false;
    // Another waiting thread may sleep because this one has polled.
    poller_.gate().notify();
  }
  if (slept_as_poller_) token_.hand_off();
}

// Set-up work wants the interface for itself.
void Waiter::step_aside() noexcept {
  const bool held = holds_token_;
  if (held) {
    polling.assert_held();
    token_.release();
    holds_token_ = false;
  }
  while (token_.exclusively_wanted()) sched_yield();
  if (held) try_token();
}

Waiter::Pause Waiter::pause(Condition ready) noexcept {
  if (portals_aborted.load(std::memory_order_relaxed)) return Pause::give_up;
  const uint64_t now = now_ns();
  if (now >= deadline_ns_) return Pause::give_up;
  if (token_.exclusively_wanted()) step_aside();
  if (holds_token_) {
    polling.assert_held();
    poller_.check_peers_if_due(now);
  }
  switch (policy_.next(idle_since_ns_, now)) {
    case WaitPolicy::Step::poll:
      break;
    case WaitPolicy::Step::yield: {
      const uint64_t before = now_ns();
      sched_yield();
      policy_.note_yield(before, now_ns());
      break;
    }
    case WaitPolicy::Step::sleep:
      sleep(ready, now);
      break;
  }
  return Pause::go_on;
}

void Waiter::sleep(Condition ready, uint64_t now) noexcept {
  const int64_t timeout_ns =
      deadline_ns_ == UINT64_MAX ? futex_no_timeout : static_cast<int64_t>(deadline_ns_ - now);
  if (!holds_token_) return sleep_as_bystander(ready, timeout_ns);
  polling.assert_held();
  if (!poller_.is_ready()) sleep_as_poller(ready, timeout_ns);
}

void Waiter::sleep_as_poller(Condition ready, int64_t timeout_ns) noexcept {
  WaitGate& gate = poller_.gate();
  gate.announce();
  const uint32_t announced = poller_.announce_sleep();
  token_.set_asleep(true);
  // This is set even if the thread does not sleep after all: the progress thread may have seen the
  // flag, and sleeps until it is notified that the poller has left.
  slept_as_poller_ = true;
  if (!ready.holds(ready.argument) && poller_.prepare_sleep() &&
      !portals_aborted.load(std::memory_order_acquire) && !token_.exclusively_wanted()) {
    const int64_t limit_ns = poller_.sleep_limit_ns();
    if (limit_ns >= 0 && (timeout_ns < 0 || limit_ns < timeout_ns)) timeout_ns = limit_ns;
    poller_.sleep(announced, timeout_ns);
    poller_.check_peers_if_due(now_ns());
  }
  token_.set_asleep(false);
  poller_.wake();
  gate.finish();
}

void Waiter::sleep_as_bystander(Condition ready, int64_t timeout_ns) noexcept {
  WaitGate& gate = poller_.gate();
  const uint32_t seen = gate.prepare();
  // The poller may have left since this thread last tried.
  try_token();
  // Asleep it wants nothing: the progress thread is not to wait for it.
  if (wants_token_) token_.want_no_more();
  wants_token_ = false;
  if (!holds_token_ && !ready.holds(ready.argument) &&
      !portals_aborted.load(std::memory_order_acquire)) {
    gate.sleep(seen, timeout_ns);
  }
  gate.finish();
}

}  // namespace lintel

// The slow part of waiting: yielding, sleeping, handing over. Reached after microseconds of idle polls.
#include "core/progress/wait.h"

#include <sched.h>

#include <utility>

namespace lintel {

std::atomic<bool> portals_aborted{false};

void PhysicalInterface::rest_between_looks(uint32_t idle_looks) noexcept {
  const uint64_t before = now_ns();
  if (!passing_.wants_yield(idle_looks, before)) return;
  sched_yield();
  passing_.note_yield(before, now_ns());
}

void Waiter::try_token() noexcept {
  if (!interface_.progress_by_callers_) return;
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
    token_.note_application_poll();
    token_.release();
    holds_token_ = false;
    // Another waiting thread may sleep in the belief that this one polls.
    interface_.gate_.notify();
  }
  if (slept_as_poller_) interface_.progress_thread_.poller_left();
}

// Set-up work wants the interface for itself.
void Waiter::step_aside() noexcept {
  const bool held = holds_token_;
  if (held) {
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
  if (holds_token_) token_.note_application_poll();
  switch (interface_.wait_policy_.next(idle_since_ns_, std::exchange(progressed_, false), now)) {
    case WaitPolicy::Step::poll:
      break;
    case WaitPolicy::Step::yield: {
      const uint64_t before = now_ns();
      sched_yield();
      interface_.wait_policy_.note_yield(before, now_ns());
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
  if (!holds_token_)
    sleep_as_bystander(ready, timeout_ns);
  else if (!interface_.transfers_.has_active())  // else there is work to do
    sleep_as_poller(ready, timeout_ns);
}

void Waiter::sleep_as_poller(Condition ready, int64_t timeout_ns) noexcept {
  Doorbell& doorbell = *interface_.doorbell_;
  interface_.gate_.announce();
  const uint32_t seen = doorbell.announce_sleep();
  interface_.gate_.fence_after_doorbell();
  token_.set_asleep(true);
  // Even if it does not sleep after all: the progress thread may have seen the flag, and sleeps until
  // it is told that the poller has left.
  slept_as_poller_ = true;
  if (!ready.holds(ready.argument) && interface_.arm_transports() &&
      !portals_aborted.load(std::memory_order_acquire) && !token_.exclusively_wanted()) {
    const int64_t limit_ns = interface_.sleep_limit_ns();
    if (limit_ns >= 0 && (timeout_ns < 0 || limit_ns < timeout_ns)) timeout_ns = limit_ns;
    interface_.poll_counters.sleeps.increment();
    const uint64_t asleep_ns = now_ns();
    const bool woken = doorbell.sleep(seen, timeout_ns);
    if (woken)
      interface_.wait_policy_.note_wake(doorbell.rung_ns.load(std::memory_order_relaxed), asleep_ns,
                                        now_ns());
    interface_.poll_counters.wakeups.increment();
    interface_.polls_since_clock_ = PhysicalInterface::polls_between_clock_looks;
  }
  token_.set_asleep(false);
  interface_.disarm_transports();
  interface_.gate_.finish();
}

void Waiter::sleep_as_bystander(Condition ready, int64_t timeout_ns) noexcept {
  WaitGate& gate = interface_.gate_;
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

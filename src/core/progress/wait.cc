// The slow part of waiting: yielding, sleeping, handing over. Reached after microseconds without news.
#include "core/progress/wait.h"

#include <sched.h>

#include <algorithm>

#include "util/config.h"

namespace lintel {

std::atomic<bool> portals_aborted{false};

namespace {

// A yield that lasted this long gave the processor to somebody who computes, not to one who waits.
// For a while, sleeping and being woken is quicker than waiting for a whole time slice to end. One alone may be the
// host's doing, which took the processor away.
constexpr uint64_t hog_yield_ns = 400'000;
constexpr uint64_t hog_memory_ns = 100'000'000;
std::atomic<uint64_t> last_hog_ns{0};
constexpr uint64_t no_yield_ns = 20'000'000;
constexpr uint64_t spin_beside_hogs_ns = 4'000;
std::atomic<uint64_t> no_yield_before_ns{0};

// Whether other threads want this processor, learnt from how long sched_yield() takes. Shared by all
// threads of the process: it is a property of the machine's load, not of one wait.
// A single slow one may have been interrupted: where processors are virtual, a tick of the clock takes 40 us.
std::atomic<int> crowding{0};
constexpr int crowding_limit = 16;
constexpr int slow_yield_weight = 4;  // of a quick one: -1

bool is_crowded() noexcept { return crowding.load(std::memory_order_relaxed) > slow_yield_weight; }

constexpr uint64_t yield_after_ns = 3'000;
constexpr uint64_t slow_yield_ns = 3'000;
// Where system calls are slow, as under emulation, so is every yield. No more than this is put down to that.
constexpr uint64_t most_yield_cost_ns = 2'000;
std::atomic<uint64_t> yield_cost_ns{most_yield_cost_ns};  // the quickest yield so far
constexpr uint64_t slow_yields_cost = 4;
constexpr uint64_t spin_when_crowded_ns = 1'500;

// Calls that look and do not wait follow each other this closely when the caller does nothing else.
constexpr uint64_t idle_pass_ns = 5'000;
constexpr uint32_t passes_between_yields = 32;

void yield_if_crowded() noexcept {
  const uint64_t before = now_ns();
  sched_yield();
  const uint64_t after = now_ns();
  if (after - before > hog_yield_ns) {
    if (after - last_hog_ns.exchange(after, std::memory_order_relaxed) < hog_memory_ns)
      no_yield_before_ns.store(after + no_yield_ns, std::memory_order_relaxed);
    crowding.store(0, std::memory_order_relaxed);
    return;
  }
  const uint64_t cost = std::min(after - before, yield_cost_ns.load(std::memory_order_relaxed));
  yield_cost_ns.store(cost, std::memory_order_relaxed);
  const bool slow = after - before > std::max(slow_yield_ns, slow_yields_cost * cost);
  const int level = crowding.load(std::memory_order_relaxed);
  if (slow && level < crowding_limit)
    crowding.store(level + slow_yield_weight, std::memory_order_relaxed);
  if (!slow && level > 0) crowding.store(level - 1, std::memory_order_relaxed);
}

}  // namespace

// Programs that look for events in a loop of their own, as MPI libraries do, would otherwise keep the
// processor until their time slice ends, and with it the peer that they wait for.
void PhysicalInterface::rest_between_passes(uint32_t passes_in_vain) noexcept {
  const uint64_t now = now_ns();
  const uint64_t last = last_rest_ns_.exchange(now, std::memory_order_relaxed);
  if (passes_in_vain == passes_between_rests || now - last > passes_between_rests * idle_pass_ns) {
    in_vain_since_ns_.store(now, std::memory_order_relaxed);  // or something was done in between
    return;
  }
  if (now < no_yield_before_ns.load(std::memory_order_relaxed)) return;
  const bool crowded = is_crowded();
  if (!crowded && (passes_in_vain % passes_between_yields != 0 ||
                   now - in_vain_since_ns_.load(std::memory_order_relaxed) < yield_after_ns))
    return;
  yield_if_crowded();
  last_rest_ns_.store(now_ns(), std::memory_order_relaxed);
}

// Somebody else polls, but may have lost the processor to this thread, which would then look in vain until its
// time slice ends.
void PhysicalInterface::ask_for_token() noexcept {
  thread_local uint32_t passes = 0;
  wanted_in_passing_.store(true, std::memory_order_relaxed);
  if (++passes % passes_between_yields == 0) sched_yield();
}

void Waiter::try_token() noexcept {
  if (!interface_.progress_by_callers_) return;
  if (interface_.exclusive_requests_.load(std::memory_order_relaxed) != 0) return;
  holds_token_ = interface_.try_acquire_token();
  if (holds_token_ && wants_token_) {
    interface_.token_wanted_.fetch_sub(1, std::memory_order_relaxed);
    wants_token_ = false;
  } else if (!holds_token_ && !wants_token_) {
    interface_.token_wanted_.fetch_add(1, std::memory_order_relaxed);
    wants_token_ = true;
  }
}

void Waiter::leave() noexcept {
  if (wants_token_) interface_.token_wanted_.fetch_sub(1, std::memory_order_relaxed);
  wants_token_ = false;
  if (holds_token_) {
    interface_.note_application_poll();
    interface_.release_token();
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
    interface_.release_token();
    holds_token_ = false;
  }
  while (interface_.exclusive_requests_.load(std::memory_order_acquire) != 0) sched_yield();
  if (held) try_token();
}

Waiter::Pause Waiter::pause(Condition ready) noexcept {
  if (portals_aborted.load(std::memory_order_relaxed)) return Pause::give_up;
  const uint64_t now = now_ns();
  // While messages come in, though not yet the one waited for, it is too early to sleep.
  if (started_ns_ == 0 || progressed_) started_ns_ = now;
  progressed_ = false;
  if (now >= deadline_ns_) return Pause::give_up;
  if (interface_.exclusive_requests_.load(std::memory_order_relaxed) != 0) step_aside();
  if (holds_token_) interface_.note_application_poll();

  const bool crowded = is_crowded();
  const uint64_t waited = now - started_ns_;
  const bool beside_hogs = now < no_yield_before_ns.load(std::memory_order_relaxed);
  if ((waited >= yield_after_ns || crowded) && !beside_hogs) yield_if_crowded();
  uint64_t spin_ns = interface_.spin_limit_ns_;
  if (spin_ns != 0) spin_ns = std::max(spin_ns, interface_.wake_cost_.worth_polling_ns());
  if (beside_hogs)
    spin_ns = std::min(spin_ns, spin_beside_hogs_ns);
  else if (crowded)
    spin_ns = std::min(spin_ns, spin_when_crowded_ns);
  // Yielding in between; hogs would not give the processor back.
  if (!beside_hogs) spin_ns = std::max(spin_ns, interface_.least_spin_ns_);
  if (waited < spin_ns) return Pause::go_on;
  // Transfers in slices are work to do, not a reason to sleep.
  if (holds_token_ && interface_.active_transfers_ != nullptr) return Pause::go_on;

  const int64_t timeout_ns =
      deadline_ns_ == UINT64_MAX ? futex_no_timeout : static_cast<int64_t>(deadline_ns_ - now);
  if (holds_token_) {
    sleep_as_poller(ready, timeout_ns);
  } else {
    sleep_as_bystander(ready, timeout_ns);
  }
  started_ns_ = now_ns();
  return Pause::go_on;
}

void Waiter::sleep_as_poller(Condition ready, int64_t timeout_ns) noexcept {
  Doorbell& doorbell = *interface_.doorbell_;
  interface_.gate_.announce();
  const uint32_t seen = doorbell.announce_sleep();
  interface_.gate_.fence_after_doorbell();
  interface_.poller_sleeps_.store(true, std::memory_order_release);
  // Even if it does not sleep after all: the progress thread may have seen the flag, and sleeps until
  // it is told that the poller has left.
  slept_as_poller_ = true;
  if (!ready.holds(ready.argument) && interface_.arm_transports() &&
      !portals_aborted.load(std::memory_order_acquire) &&
      interface_.exclusive_requests_.load(std::memory_order_acquire) == 0) {
    const int64_t limit_ns = interface_.sleep_limit_ns();
    if (limit_ns >= 0 && (timeout_ns < 0 || limit_ns < timeout_ns)) timeout_ns = limit_ns;
    interface_.poll_counters.sleeps.increment();
    const uint64_t asleep_ns = now_ns();
    const bool woken = doorbell.sleep(seen, timeout_ns);
    if (woken && !is_crowded())
      interface_.wake_cost_.note(doorbell.rung_ns.load(std::memory_order_relaxed), asleep_ns,
                                 now_ns());
    interface_.poll_counters.wakeups.increment();
    interface_.polls_since_clock_ = PhysicalInterface::polls_between_clock_looks;
  }
  interface_.poller_sleeps_.store(false, std::memory_order_release);
  interface_.disarm_transports();
  interface_.gate_.finish();
}

void Waiter::sleep_as_bystander(Condition ready, int64_t timeout_ns) noexcept {
  WaitGate& gate = interface_.gate_;
  const uint32_t seen = gate.prepare();
  // The poller may have left since this thread last tried.
  try_token();
  // Asleep it wants nothing: the progress thread is not to wait for it.
  if (wants_token_) interface_.token_wanted_.fetch_sub(1, std::memory_order_relaxed);
  wants_token_ = false;
  if (!holds_token_ && !ready.holds(ready.argument) &&
      !portals_aborted.load(std::memory_order_acquire)) {
    gate.sleep(seen, timeout_ns);
  }
  gate.finish();
}

}  // namespace lintel

// The decisions of waiting threads. Message path, after microseconds of idle polls.
#include "core/progress/wait_policy.h"

#include <algorithm>

namespace lintel {

void WaitPolicy::use(const WaitSettings& settings) noexcept {
  settings_ = settings;
  if (settings.spin_ns == 0 || !settings.heuristics.uses(WaitHeuristic::late_arrivals))
    settings_.least_spin_ns = 0;
}

bool WaitPolicy::wants_placement(uint64_t now_ns) noexcept {
  return settings_.least_spin_ns == 0 && settings_.heuristics.uses(WaitHeuristic::placement) &&
         now_ns - last_sleep_ns_.load(std::memory_order_relaxed) >= placement_interval_ns;
}

WaitPolicy::Step WaitPolicy::next(uint64_t& idle_since_ns, bool progressed,
                                  uint64_t now_ns) noexcept {
  // While messages come, though not the one that is waited for, it is too early to sleep.
  if (idle_since_ns == 0 ||
      (progressed && settings_.heuristics.uses(WaitHeuristic::recent_progress)))
    idle_since_ns = now_ns;
  const uint64_t waited = now_ns - idle_since_ns;
  const uint64_t short_ns = std::min(settings_.spin_ns, short_spin_ns);
  Step step = Step::poll;
  if (load_.has_long_turns(now_ns)) {
    if (waited >= short_ns) step = Step::sleep;
  } else if (load_.is_crowded()) {
    step = waited >= std::max(short_ns, settings_.least_spin_ns) || wants_placement(now_ns)
               ? Step::sleep
               : Step::yield;
  } else {
    const uint64_t awaiting_ns =
        settings_.spin_ns == 0 ? 0 : std::max(settings_.spin_ns, wake_cost_.worth_polling_ns());
    if (waited >= std::max(awaiting_ns, settings_.least_spin_ns))
      step = Step::sleep;
    else if (waited >= yield_after_ns)
      step = Step::yield;
  }
  if (step == Step::sleep) {
    last_sleep_ns_.store(now_ns, std::memory_order_relaxed);
    idle_since_ns = 0;
  }
  return step;
}

// Where processors are crowded a woken thread waits for its processor, which is not what waking costs.
void WaitPolicy::note_wake(uint64_t rung_ns, uint64_t asleep_ns, uint64_t awake_ns) noexcept {
  if (settings_.heuristics.uses(WaitHeuristic::slow_wakes) && !load_.is_crowded())
    wake_cost_.note(rung_ns, asleep_ns, awake_ns);
}

}  // namespace lintel

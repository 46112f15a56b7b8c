// The rare parts of looks that do not wait. Message path.
#include "core/progress/passing_policy.h"

#include <sched.h>

#include "util/clock.h"

namespace lintel {

void PassingPolicy::use(WaitHeuristics heuristics) noexcept {
  spared_after_costly_ = heuristics.uses(WaitHeuristic::spared_polls) ? spared_after_costly : 0;
  rests_ = heuristics.uses(WaitHeuristic::rests);
  shares_rounds_ = heuristics.uses(WaitHeuristic::shared_rounds);
}

void PassingPolicy::spare_next() noexcept {
  last_costly_ns_.store(clock_(), std::memory_order_relaxed);
  to_spare_.store(spared_after_costly_, std::memory_order_relaxed);
}

// A program that polls in a loop, as MPI libraries do, would otherwise keep the processor until its
// time slice ends, and the peer whose message it expects could not run.
bool PassingPolicy::wants_yield(uint32_t idle_looks, uint64_t now_ns) noexcept {
  const uint64_t last = last_rest_ns_.exchange(now_ns, std::memory_order_relaxed);
  if (idle_looks == looks_between_rests || now_ns - last > looks_between_rests * idle_look_ns) {
    // The first time, or the caller did something else in between.
    idle_since_ns_.store(now_ns, std::memory_order_relaxed);
    return false;
  }
  if (!rests_ || load_.avoids_yields(now_ns)) return false;
  return load_.is_crowded() ||
         (idle_looks % looks_between_yields == 0 &&
          now_ns - idle_since_ns_.load(std::memory_order_relaxed) >= WaitPolicy::yield_after_ns);
}

void PassingPolls::rest(uint32_t idle_looks) noexcept {
  const uint64_t before = now_ns();
  if (!policy_.wants_yield(idle_looks, before)) return;
  sched_yield();
  policy_.note_yield(before, now_ns());
}

}  // namespace lintel

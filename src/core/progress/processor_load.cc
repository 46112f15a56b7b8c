// What the length of a yield says about the load. Message path, after microseconds of idle polls.
#include "core/progress/processor_load.h"

#include <algorithm>

namespace lintel {

void ProcessorLoad::note_long_turn(uint64_t after_ns) noexcept {
  const WaitHeuristics heuristics = heuristics_.load(std::memory_order_relaxed);
  const uint64_t last = last_long_turn_ns_.exchange(after_ns, std::memory_order_relaxed);
  const bool alone =
      heuristics.uses(WaitHeuristic::lone_long_turns) && after_ns - last >= long_turn_memory_ns;
  if (!alone && heuristics.uses(WaitHeuristic::long_turns))
    no_yield_before_ns_.store(after_ns + no_yield_ns, std::memory_order_relaxed);
  level_.store(0, std::memory_order_relaxed);
}

void ProcessorLoad::note_yield(uint64_t before_ns, uint64_t after_ns) noexcept {
  const uint64_t took = after_ns - before_ns;
  if (took > long_turn_ns) {
    note_long_turn(after_ns);
    return;
  }
  const WaitHeuristics heuristics = heuristics_.load(std::memory_order_relaxed);
  const uint64_t cost = std::min(took, yield_cost_ns_.load(std::memory_order_relaxed));
  yield_cost_ns_.store(cost, std::memory_order_relaxed);
  const uint64_t quick = heuristics.uses(WaitHeuristic::slow_calls)
                             ? std::max(slow_yield_ns, slow_yields_cost * cost)
                             : slow_yield_ns;
  const bool slow = took > quick && heuristics.uses(WaitHeuristic::crowding);
  const int weight = heuristics.uses(WaitHeuristic::interruptions) ? slow_yield_weight : most_level;
  const int level = level_.load(std::memory_order_relaxed);
  if (slow && level < most_level) level_.store(level + weight, std::memory_order_relaxed);
  if (!slow && level > 0) level_.store(level - 1, std::memory_order_relaxed);
}

ProcessorLoad& processor_load() noexcept {
  static constinit ProcessorLoad load;
  return load;
}

}  // namespace lintel

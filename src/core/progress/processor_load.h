// Estimates from the duration of yields whether other threads use the processors that this process
// runs on. One object serves all threads of a process: the load is a property of the machine and
// not of one wait. Concurrent notes may overwrite each other, which loses one of them. Message
// path, after microseconds of idle polls.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/progress/wait_heuristics.h"

namespace lintel {

class ProcessorLoad {
 public:
  // A yield that lasted this long let another thread run.
  static constexpr uint64_t slow_yield_ns = 1'500;
  // A yield that lasted this long gave the processor to a thread that computes, for its whole time
  // slice.
  static constexpr uint64_t long_turn_ns = 400'000;

  // Set-up path.
  void use(WaitHeuristics heuristics) noexcept {
    heuristics_.store(heuristics, std::memory_order_relaxed);
  }

  void note_yield(uint64_t before_ns, uint64_t after_ns) noexcept {
    const WaitHeuristics heuristics = heuristics_.load(std::memory_order_relaxed);
    const uint64_t took_ns = after_ns - before_ns;
    if (took_ns > long_turn_ns && heuristics.uses(WaitHeuristic::long_turns)) {
      no_yield_before_ns_.store(after_ns + took_ns, std::memory_order_relaxed);
      return;
    }
    const int level = level_.load(std::memory_order_relaxed);
    const bool slow = took_ns > slow_yield_ns && heuristics.uses(WaitHeuristic::crowding);
    if (slow && level < most_level)
      level_.store(level + slow_yield_weight, std::memory_order_relaxed);
    if (!slow && level > 0) level_.store(level - 1, std::memory_order_relaxed);
  }

  [[nodiscard]] bool is_crowded() const noexcept {
    return level_.load(std::memory_order_relaxed) > slow_yield_weight;
  }
  // No thread yields for as long as the last long turn took. A sleep and a wake-up take less time
  // than another long turn, and the thread that computes gets no more than half of the time.
  [[nodiscard]] bool avoids_yields(uint64_t now_ns) const noexcept {
    return now_ns < no_yield_before_ns_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr int most_level = 16;
  // A quick yield weighs -1. So one slow yield in five does not count: it may have been
  // interrupted. A tick of the clock takes 40 us where processors are virtual.
  static constexpr int slow_yield_weight = 4;

  std::atomic<WaitHeuristics> heuristics_{};
  std::atomic<int> level_{0};
  std::atomic<uint64_t> no_yield_before_ns_{0};
};

// The object of this process.
[[nodiscard]] inline ProcessorLoad& processor_load() noexcept {
  static constinit ProcessorLoad load;
  return load;
}

}  // namespace lintel

// Whether other threads want the processors that this process runs on, learnt from how long yields take. One object
// serves all threads of a process: the load belongs to the machine and not to one wait. Concurrent notes may overwrite
// each other, which loses one finding. Never reads a clock itself. Message path, after microseconds of idle polls.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/progress/wait_heuristics.h"

namespace lintel {

class ProcessorLoad {
 public:
  // A yield that lasted this long gave the processor to a thread that computes, for its whole time slice.
  static constexpr uint64_t long_turn_ns = 400'000;
  // Two long turns within this time count. One alone may come from the host, which took the processor away.
  static constexpr uint64_t long_turn_memory_ns = 100'000'000;
  // So long no thread yields after two long turns: sleeping and being woken is quicker than a time slice.
  static constexpr uint64_t no_yield_ns = 20'000'000;
  // A yield that lasted this long let another thread run.
  static constexpr uint64_t slow_yield_ns = 3'000;
  // Where system calls are slow, as under emulation, every yield is. Up to this much is put down to that.
  static constexpr uint64_t most_yield_cost_ns = 2'000;

  // Set-up path.
  void use(WaitHeuristics heuristics) noexcept {
    heuristics_.store(heuristics, std::memory_order_relaxed);
  }

  void note_yield(uint64_t before_ns, uint64_t after_ns) noexcept;

  [[nodiscard]] bool is_crowded() const noexcept {
    return level_.load(std::memory_order_relaxed) > slow_yield_weight;
  }
  // Yields last for whole time slices now.
  [[nodiscard]] bool has_long_turns(uint64_t now_ns) const noexcept {
    return now_ns < no_yield_before_ns_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr int most_level = 16;
  // A quick yield weighs -1. So one slow yield in five does not count: it may have been interrupted. A tick of the
  // clock takes 40 us where processors are virtual.
  static constexpr int slow_yield_weight = 4;
  static constexpr uint64_t slow_yields_cost = 4;  // times what a quick one costs

  void note_long_turn(uint64_t after_ns) noexcept;

  std::atomic<WaitHeuristics> heuristics_{};
  std::atomic<int> level_{0};
  std::atomic<uint64_t> yield_cost_ns_{most_yield_cost_ns};  // the quickest yield so far
  std::atomic<uint64_t> last_long_turn_ns_{0};
  std::atomic<uint64_t> no_yield_before_ns_{0};
};

// That of this process.
[[nodiscard]] ProcessorLoad& processor_load() noexcept;

}  // namespace lintel

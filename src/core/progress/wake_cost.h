// What it costs at least to be woken, learnt from the times at which others rang. A thread that waits polls for twice as
// long before it sleeps: where waking takes longer than a thread polls, two that answer each other would both sleep
// whenever the other's answer comes, and go on so. Any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace lintel {

class WakeCost {
 public:
  // The times lie in memory that peers can write; and who waited longer waited for a processor.
  static constexpr uint64_t most_ns = 250'000;

  // After a sleep that the bell ended. All by now_ns(): when it was rung last, when the sleep began and when it ended.
  void note(uint64_t rung_ns, uint64_t asleep_ns, uint64_t awake_ns) noexcept {
    if (rung_ns < asleep_ns || rung_ns > awake_ns) return;  // nonsense
    const uint64_t took = std::min(awake_ns - rung_ns, most_ns);
    // A quick one shows what is possible; slow ones may have waited for their processor, unless all are slow.
    const uint64_t least = least_ns_.load(std::memory_order_relaxed);
    least_ns_.store(took < least ? took : least + (took - least) / slowness,
                    std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t worth_polling_ns() const noexcept {
    return 2 * least_ns_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t slowness = 8;
  std::atomic<uint64_t> least_ns_{0};
};

}  // namespace lintel

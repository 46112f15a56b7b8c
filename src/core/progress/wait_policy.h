// Decides what a waiting thread does next: poll on, yield or sleep. One object per physical interface, used by
// all its waiting threads. It reads no clock and makes no system call: the caller passes the times and does what is
// decided. Message path, after microseconds of idle polls.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/progress/processor_load.h"
#include "core/progress/wait_heuristics.h"
#include "core/progress/wake_cost.h"

namespace lintel {

struct WaitSettings {
  uint64_t spin_ns = 50'000;   // how long a thread polls before it sleeps
  uint64_t least_spin_ns = 0;  // Capabilities::least_spin_ns, the largest of all transports
  WaitHeuristics heuristics{};
};

class WaitPolicy {
 public:
  enum class Step : uint8_t { poll, yield, sleep };

  // Idle polling goes on for so long without a yield.
  static constexpr uint64_t yield_after_ns = 3'000;
  // How long a thread polls before it sleeps when other threads want its processor.
  static constexpr uint64_t short_spin_ns = 1'500;
  // On a crowded processor a thread sleeps once in this time, even if yields would do: who is woken is put on an
  // idle processor if there is one, and who yields stays where it is.
  static constexpr uint64_t placement_interval_ns = 1'000'000;

  explicit WaitPolicy(ProcessorLoad& load) noexcept : load_(load) {}
  // Set-up path.
  void use(const WaitSettings& settings) noexcept;

  // After a few dozen polls. `idle_since_ns` belongs to the wait, and is 0 at first. `progressed`: messages came
  // since the last decision.
  [[nodiscard]] Step next(uint64_t& idle_since_ns, bool progressed, uint64_t now_ns) noexcept;
  // What came of it.
  void note_yield(uint64_t before_ns, uint64_t after_ns) noexcept {
    load_.note_yield(before_ns, after_ns);
  }
  // A doorbell rung at rung_ns ended a sleep.
  void note_wake(uint64_t rung_ns, uint64_t asleep_ns, uint64_t awake_ns) noexcept;

 private:
  [[nodiscard]] bool wants_placement(uint64_t now_ns) noexcept;

  ProcessorLoad& load_;
  WaitSettings settings_;
  WakeCost wake_cost_;
  std::atomic<uint64_t> last_sleep_ns_{0};
};

}  // namespace lintel

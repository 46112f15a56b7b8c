// Decides what a waiting thread does next: poll on, yield or sleep. One object per physical
// interface, used by all its waiting threads. It reads no clock and makes no system call: the
// caller passes the times and does what is decided. Message path, after microseconds of idle polls.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/progress/processor_load.h"
#include "core/progress/wait_heuristics.h"

namespace lintel {

struct WaitSettings {
  uint64_t spin_ns = 50'000;          // time for which a thread polls before it sleeps
  uint64_t least_spin_ns = 0;         // Capabilities::least_spin_ns, the largest of all transports
  bool polls_by_system_call = false;  // Capabilities::polls_by_system_call, of any transport
  WaitHeuristics heuristics{};
};

class WaitPolicy {
 public:
  enum class Step : uint8_t { poll, yield, sleep };

  // Time of idle polling without a yield.
  static constexpr uint64_t yield_after_ns = 3'000;
  // Maximum time for which a thread polls before it sleeps beside a thread that computes.
  static constexpr uint64_t longest_short_spin_ns = 1'500;

  explicit WaitPolicy(ProcessorLoad& load) noexcept : load_(load) { use({}); }
  // Set-up path.
  void use(const WaitSettings& settings) noexcept {
    if (settings.heuristics.uses(WaitHeuristic::late_arrivals) && settings.spin_ns != 0)
      least_spin_ns_ = settings.least_spin_ns;
    spin_ns_ = std::max(settings.spin_ns, least_spin_ns_);
    short_spin_ns_ = std::max(std::min(settings.spin_ns, longest_short_spin_ns), least_spin_ns_);
    const bool polls_less =
        settings.polls_by_system_call && settings.heuristics.uses(WaitHeuristic::few_polls);
    few_polls_ = polls_less ? few_costly_polls : many_polls;
  }

  // After polls(). `idle_since_ns` belongs to the wait, and is 0 at first.
  [[nodiscard]] Step next(uint64_t& idle_since_ns, uint64_t now_ns) noexcept {
    if (idle_since_ns == 0) idle_since_ns = now_ns;
    const uint64_t waited_ns = now_ns - idle_since_ns;
    const bool crowded = load_.is_crowded();
    const bool avoids_yields = load_.avoids_yields(now_ns);
    polls_.store(crowded || avoids_yields ? few_polls_ : many_polls, std::memory_order_relaxed);
    if (waited_ns >= (avoids_yields ? short_spin_ns_ : spin_ns_)) {
      idle_since_ns = 0;
      return Step::sleep;
    }
    const bool yields = !avoids_yields && (crowded || waited_ns >= yield_after_ns);
    return yields ? Step::yield : Step::poll;
  }
  // Returns the number of polls before the next call of next(). Any thread.
  [[nodiscard]] unsigned polls() const noexcept { return polls_.load(std::memory_order_relaxed); }
  void note_yield(uint64_t before_ns, uint64_t after_ns) noexcept {
    load_.note_yield(before_ns, after_ns);
  }

 private:
  // A thread whose processor others want makes few polls that are system calls.
  static constexpr unsigned many_polls = 64;
  static constexpr unsigned few_costly_polls = 4;

  ProcessorLoad& load_;
  std::atomic<unsigned> polls_{many_polls};
  unsigned few_polls_ = many_polls;
  uint64_t spin_ns_ = 0;
  uint64_t short_spin_ns_ = 0;
  uint64_t least_spin_ns_ = 0;
};

}  // namespace lintel

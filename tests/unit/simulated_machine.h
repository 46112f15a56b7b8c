// A machine with a few processors in simulated time, for unit tests of waiting. Threads compute,
// yield, sleep and wake each other, and a scheduler gives them turns. Deterministic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace lintel::test {

inline constexpr uint64_t us = 1'000;
inline constexpr uint64_t ms = 1'000'000;

class SimulatedMachine;

class SimulatedThread {
 public:
  struct Action {
    enum class Kind : uint8_t { compute, yield, sleep } kind;
    uint64_t ns = 0;  // to compute; the time limit of a sleep, UINT64_MAX for none
  };
  virtual ~SimulatedThread() = default;
  // Returns the next action of the thread; its last one has just ended.
  virtual Action next(SimulatedMachine& machine) = 0;

 private:
  friend class SimulatedMachine;
  unsigned processor_ = 0;
  bool asleep_ = false;
  uint64_t wakes_at_ns_ = UINT64_MAX;
  std::optional<uint64_t> compute_ns_;  // the rest of the current action
  uint64_t ran_ns_ = 0;
};

struct MachineTimes {
  uint64_t yield_ns = 400;
  uint64_t switch_ns = 1'000;  // from one thread to another
  uint64_t wake_ns = 3'000;    // from the wake-up until the thread runs on an idle processor
  uint64_t slice_ns = 3 * ms;
  // A woken thread preempts one that has had this much more processor time than itself.
  uint64_t preemption_ns = ms;
  uint64_t tick_every_ns = 0;  // 0: no interruptions
  uint64_t tick_ns = 0;
};

class SimulatedMachine {
 public:
  SimulatedMachine(unsigned processors, MachineTimes times)
      : times_(times), processors_(processors) {}

  void start(SimulatedThread& thread, unsigned processor) {
    thread.processor_ = processor;
    threads_.push_back(&thread);
    processors_[processor].waiting.push_back(&thread);
  }
  [[nodiscard]] uint64_t now_ns() const { return now_ns_; }
  void wake(SimulatedThread& thread) {
    if (thread.asleep_)
      thread.wakes_at_ns_ = std::min(thread.wakes_at_ns_, now_ns_ + times_.wake_ns);
  }
  void run_until(uint64_t end_ns) {
    while (now_ns_ < end_ns) step(end_ns);
  }

 private:
  struct Processor {
    SimulatedThread* running = nullptr;
    std::deque<SimulatedThread*> waiting;
    uint64_t running_since_ns = 0;
    bool yields = false;  // at the end of its computation
    uint64_t next_tick_ns = 0;
  };

  void step(uint64_t end_ns);
  void begin(Processor& processor);
  void choose(Processor& processor);
  void wake_sleepers();
  void enqueue_woken(SimulatedThread& thread);
  void interrupt(Processor& processor);

  MachineTimes times_;
  std::vector<Processor> processors_;
  std::vector<SimulatedThread*> threads_;
  uint64_t now_ns_ = 1'000 * ms;  // 0 means "no time" to the code under test
};

}  // namespace lintel::test

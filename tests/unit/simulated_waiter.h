// Processes whose threads wait for messages like Waiter on a SimulatedMachine. A WaitPolicy makes
// the decisions.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/progress/wait_policy.h"
#include "unit/simulated_machine.h"

namespace lintel::test {

class SimulatedWaiter;

class SimulatedProcess {
 public:
  explicit SimulatedProcess(const WaitSettings& settings) {
    load_.use(settings.heuristics);
    policy_.use(settings);
  }
  // A message arrives. A sleeping poller is woken, unless the transport wakes no thread.
  void deliver(SimulatedMachine& machine, bool rings = true);

 private:
  friend class SimulatedWaiter;

  void wake_bystanders(SimulatedMachine& machine);

  ProcessorLoad load_;
  WaitPolicy policy_{load_};
  std::vector<SimulatedWaiter*> waiters_;
  SimulatedWaiter* poller_ = nullptr;  // holds the poll token
  uint64_t arrived_ = 0;               // messages that no poll has found
  uint64_t posted_ = 0;                // messages that no thread has taken
};

class SimulatedWaiter final : public SimulatedThread {
 public:
  // After each message the thread computes for `computes_ns` and then calls `then`.
  SimulatedWaiter(SimulatedProcess& process, uint64_t computes_ns,
                  std::function<void(SimulatedMachine&)> then)
      : process_(process), computes_ns_(computes_ns), then_(std::move(then)) {
    process.waiters_.push_back(this);
  }
  Action next(SimulatedMachine& machine) override;

  uint64_t sleep_limit_ns = UINT64_MAX;  // Transport::sleep_limit_ns()
  uint64_t taken = 0;                    // messages
  uint64_t sleeps = 0;
  uint64_t yields = 0;

 private:
  friend class SimulatedProcess;
  static constexpr unsigned looks_between_pauses = 8;
  static constexpr uint64_t look_ns = 8 * 50;  // eight polls

  [[nodiscard]] bool look(SimulatedMachine& machine);
  Action decide(SimulatedMachine& machine);

  SimulatedProcess& process_;
  uint64_t computes_ns_;
  std::function<void(SimulatedMachine&)> then_;
  enum class State : uint8_t { polling, computing, yielding, asleep } state_ = State::polling;
  uint64_t idle_since_ns_ = 0;
  unsigned looks_ = 0;
  bool sleeps_ = false;
  uint64_t began_ns_ = 0;  // start of a yield or sleep
};

// Two processes with one thread each that answer each other's messages.
class SimulatedPair {
 public:
  SimulatedPair(const WaitSettings& settings, uint64_t computes_ns, bool rings = true);
  void start(SimulatedMachine& machine, unsigned first, unsigned second);
  [[nodiscard]] uint64_t sleeps() const { return a.sleeps + b.sleeps; }
  // Mean round-trip time from now on, for `time_ns`.
  [[nodiscard]] double trip_us(SimulatedMachine& machine, uint64_t time_ns);

 private:
  SimulatedProcess first_;
  SimulatedProcess second_;

 public:
  SimulatedWaiter a;
  SimulatedWaiter b;
};

// A thread that computes all the time.
class SimulatedComputation final : public SimulatedThread {
 public:
  Action next(SimulatedMachine&) override { return {Action::Kind::compute, 100 * ms}; }
};

}  // namespace lintel::test

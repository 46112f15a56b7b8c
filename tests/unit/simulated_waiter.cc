#include "unit/simulated_waiter.h"

namespace lintel::test {

void SimulatedProcess::deliver(SimulatedMachine& machine, bool rings) {
  ++arrived_;
  if (poller_ == nullptr || !poller_->sleeps_ || !rings) return;
  machine.wake(*poller_);
}

void SimulatedProcess::wake_bystanders(SimulatedMachine& machine) {
  for (SimulatedWaiter* waiter : waiters_)
    if (waiter->sleeps_ && waiter != poller_) machine.wake(*waiter);
}

// The decisions of Waiter::step() and what follows it. Returns true when the wait is over.
bool SimulatedWaiter::look(SimulatedMachine& machine) {
  if (process_.poller_ == nullptr) process_.poller_ = this;
  const bool polls = process_.poller_ == this;
  if (polls && process_.arrived_ != 0) {
    process_.posted_ += std::exchange(process_.arrived_, 0);
    process_.wake_bystanders(machine);
  }
  if (process_.posted_ == 0) return false;
  --process_.posted_;
  ++taken;
  idle_since_ns_ = 0;
  looks_ = 0;
  if (polls) {
    process_.poller_ = nullptr;
    process_.wake_bystanders(machine);
  }
  return true;
}

SimulatedThread::Action SimulatedWaiter::decide(SimulatedMachine& machine) {
  began_ns_ = machine.now_ns();
  switch (process_.policy_.next(idle_since_ns_, began_ns_)) {
    case WaitPolicy::Step::poll:
      break;
    case WaitPolicy::Step::yield:
      ++yields;
      state_ = State::yielding;
      return {Action::Kind::yield};
    case WaitPolicy::Step::sleep:
      ++sleeps;
      state_ = State::asleep;
      sleeps_ = true;
      return {Action::Kind::sleep, sleep_limit_ns};
  }
  return {Action::Kind::compute, look_ns};
}

SimulatedThread::Action SimulatedWaiter::next(SimulatedMachine& machine) {
  switch (std::exchange(state_, State::polling)) {
    case State::computing:
      then_(machine);
      break;
    case State::yielding:
      process_.policy_.note_yield(began_ns_, machine.now_ns());
      break;
    case State::asleep:
      sleeps_ = false;
      break;
    case State::polling:
      break;
  }
  if (look(machine)) {
    state_ = State::computing;
    return {Action::Kind::compute, computes_ns_};
  }
  if (++looks_ % looks_between_pauses == 0) return decide(machine);
  return {Action::Kind::compute, look_ns};
}

SimulatedPair::SimulatedPair(const WaitSettings& settings, uint64_t computes_ns, bool rings)
    : first_(settings),
      second_(settings),
      a(first_, computes_ns,
        [this, rings](SimulatedMachine& machine) { second_.deliver(machine, rings); }),
      b(second_, computes_ns,
        [this, rings](SimulatedMachine& machine) { first_.deliver(machine, rings); }) {}

void SimulatedPair::start(SimulatedMachine& machine, unsigned first, unsigned second) {
  first_.deliver(machine);
  machine.start(a, first);
  machine.start(b, second);
}

double SimulatedPair::trip_us(SimulatedMachine& machine, uint64_t time_ns) {
  const uint64_t before = a.taken;
  machine.run_until(machine.now_ns() + time_ns);
  return static_cast<double>(time_ns) / us /
         static_cast<double>(std::max<uint64_t>(a.taken - before, 1));
}

}  // namespace lintel::test

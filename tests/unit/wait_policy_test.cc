// The waiting policy in simulated schedules. For each heuristic there is a schedule in which it
// matters.
#include "core/progress/wait_policy.h"

#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/progress/passing_policy.h"
#include "core/progress/progress_thread.h"
#include "unit/simulated_machine.h"
#include "unit/simulated_waiter.h"

namespace lintel::test {
namespace {

WaitSettings without(WaitHeuristic heuristic) {
  return {.heuristics = WaitHeuristics().without(heuristic)};
}

struct Outcome {
  double trip_us;
  uint64_t sleeps;
};

// Two processes that compute for a while after each message.
Outcome run_pair(const WaitSettings& settings, uint64_t computes_ns, MachineTimes times = {},
                 unsigned second_processor = 1) {
  SimulatedMachine machine(2, times);
  SimulatedPair pair(settings, computes_ns);
  pair.start(machine, 0, second_processor);
  const double trip_us = pair.trip_us(machine, 100 * ms);
  return {trip_us, pair.sleeps()};
}

TEST(WaitHeuristicsTest, EachHasAName) {
  EXPECT_EQ(
      std::set<std::string_view>(wait_heuristic_names.begin(), wait_heuristic_names.end()).size(),
      wait_heuristic_names.size());
  for (size_t i = 0; i < wait_heuristic_names.size(); ++i) {
    const auto one = static_cast<WaitHeuristic>(i);
    const std::optional<WaitHeuristics> fewer = WaitHeuristics().without(wait_heuristic_names[i]);
    ASSERT_TRUE(fewer);
    for (size_t k = 0; k < wait_heuristic_names.size(); ++k)
      EXPECT_EQ(fewer->uses(static_cast<WaitHeuristic>(k)), k != i);
    EXPECT_TRUE(WaitHeuristics().uses(one));
  }
  EXPECT_FALSE(WaitHeuristics().without("nothing"));
}

TEST(WaitPolicyTest, AloneOnTheirProcessorsTwoProcessesPoll) {
  const Outcome outcome = run_pair({}, 200);
  EXPECT_LE(outcome.trip_us, 1.2);
  EXPECT_EQ(outcome.sleeps, 0u);
}

TEST(WaitPolicyTest, AWaitWithoutSpinningSleepsAtTheFirstDecision) {
  ProcessorLoad load;
  WaitPolicy policy(load);
  policy.use({.spin_ns = 0, .least_spin_ns = ms});
  uint64_t idle_since_ns = 0;
  EXPECT_EQ(policy.next(idle_since_ns, ms), WaitPolicy::Step::sleep);
}

TEST(WaitPolicyTest, OnACrowdedProcessorPollsByASystemCallAreFew) {
  const auto polls_after = [](bool by_system_call, uint64_t yield_ns, WaitSettings settings = {}) {
    ProcessorLoad load;
    WaitPolicy policy(load);
    settings.polls_by_system_call = by_system_call;
    policy.use(settings);
    for (int i = 0; i < 3; ++i) policy.note_yield(ms, ms + yield_ns);
    uint64_t idle_since_ns = 0;
    static_cast<void>(policy.next(idle_since_ns, ms + yield_ns));
    return policy.polls();
  };
  EXPECT_EQ(polls_after(true, us), 64u);
  EXPECT_EQ(polls_after(false, 10 * us), 64u);
  EXPECT_EQ(polls_after(true, 10 * us), 4u);
  // A thread that computes had the processor for its time slice.
  EXPECT_EQ(polls_after(true, 3 * ms), 4u);
  EXPECT_EQ(polls_after(true, 10 * us, without(WaitHeuristic::few_polls)), 64u);
}

TEST(WaitPolicyTest, CrowdingTwoProcessesOnOneProcessorYieldSooner) {
  const auto trip_us = [](const WaitSettings& settings) {
    return run_pair(settings, 200, {}, 0).trip_us;
  };
  EXPECT_LE(trip_us({}), 13);
  EXPECT_GE(trip_us(without(WaitHeuristic::crowding)), 1.2 * trip_us({}));
}

TEST(WaitPolicyTest, CrowdedPairsGetOn) {
  SimulatedMachine machine(2, {});
  std::vector<std::unique_ptr<SimulatedPair>> pairs;
  for (unsigned i = 0; i < 4; ++i) {
    pairs.push_back(std::make_unique<SimulatedPair>(WaitSettings{}, 200));
    pairs.back()->start(machine, 0, 1);
  }
  machine.run_until(machine.now_ns() + 20 * ms);
  for (const auto& pair : pairs) EXPECT_GE(pair->a.taken, 20 * ms / (20 * us));
}

// On virtual processors a clock tick takes long, and some ticks happen during a yield.
TEST(WaitPolicyTest, InterruptionsAreNoCrowd) {
  const MachineTimes ticking{.tick_every_ns = ms, .tick_ns = 30 * us};
  EXPECT_EQ(run_pair({}, 10 * us, ticking).sleeps, 0u);
}

TEST(WaitPolicyTest, LongTurnsOfAnotherThreadAreNotAwaited) {
  const auto trip_us = [](const WaitSettings& settings) {
    SimulatedMachine machine(2, {});
    SimulatedPair pair(settings, 10 * us);
    SimulatedComputation computation;
    pair.start(machine, 0, 1);
    machine.start(computation, 0);
    return pair.trip_us(machine, 500 * ms);
  };
  EXPECT_LE(trip_us({}), 50);
  EXPECT_GE(trip_us(without(WaitHeuristic::long_turns)), 1000);
}

// Messages of a port without interrupts wake no thread.
TEST(WaitPolicyTest, LateArrivalsAreWorthLongerPolling) {
  const auto trip_us = [](WaitSettings settings) {
    settings.least_spin_ns = 200 * us;
    SimulatedMachine machine(2, {});
    SimulatedPair pair(settings, 60 * us, false);
    pair.a.sleep_limit_ns = pair.b.sleep_limit_ns = ms;
    pair.start(machine, 0, 1);
    return pair.trip_us(machine, 100 * ms);
  };
  EXPECT_LE(trip_us({}), 125);
  EXPECT_GE(trip_us(without(WaitHeuristic::late_arrivals)), 1000);
}

// One thread polls for all; another process shares one of their processors. The threads of a queue
// need not get equal shares.
TEST(WaitPolicyTest, ThreeThreadsAtOneQueueAllTakeMessages) {
  SimulatedMachine machine(2, {});
  SimulatedProcess threads({});
  SimulatedProcess peer({});
  const auto answer = [&peer](SimulatedMachine& m) { peer.deliver(m); };
  SimulatedWaiter first(threads, 5 * us, answer);
  SimulatedWaiter second(threads, 5 * us, answer);
  SimulatedWaiter third(threads, 5 * us, answer);
  SimulatedWaiter other(peer, 5 * us, [&threads](SimulatedMachine& m) { threads.deliver(m); });
  machine.start(first, 0);
  machine.start(second, 1);
  machine.start(third, 0);
  machine.start(other, 1);
  threads.deliver(machine);
  machine.run_until(machine.now_ns() + 100 * ms);
  EXPECT_GE(other.taken, 100 * ms / (25 * us));
  for (const SimulatedWaiter* waiter : {&first, &second, &third}) EXPECT_GE(waiter->taken, 10u);
}

// Looks, which do not wait, and the progress thread at the same time, in simulated time.

uint64_t clock_ns = 0;
uint64_t read_clock() noexcept { return clock_ns; }

class PassingPolicyTest : public testing::Test {
 protected:
  void SetUp() override { clock_ns = 1'000 * ms; }
  static WaitHeuristics without(WaitHeuristic heuristic) {
    return WaitHeuristics().without(heuristic);
  }

  ProcessorLoad load;
  PassingPolicy policy{load, read_clock};

  void look(bool found, bool costly = false) {
    static_cast<void>(policy.note_result(found, costly));
  }
};

TEST_F(PassingPolicyTest, SparedPollsFollowCostlyMessages) {
  look(true);
  EXPECT_FALSE(policy.spares_poll());
  look(true, true);
  EXPECT_TRUE(policy.spares_poll());
  EXPECT_TRUE(policy.spares_poll());
  EXPECT_FALSE(policy.spares_poll());
  policy.use(without(WaitHeuristic::spared_polls));
  look(true, true);
  EXPECT_FALSE(policy.spares_poll());
}

TEST_F(PassingPolicyTest, ALookNowAndThenIsNotSpared) {
  look(true, true);
  clock_ns += PassingPolicy::spared_for_ns;
  EXPECT_FALSE(policy.spares_poll());
}

TEST_F(PassingPolicyTest, SharedRoundsCanBeSwitchedOff) {
  EXPECT_TRUE(policy.shares_rounds());
  policy.use(without(WaitHeuristic::shared_rounds));
  EXPECT_FALSE(policy.shares_rounds());
}

// A program that looks for messages in a loop and answers each message.
class LookingProgram final : public SimulatedThread {
 public:
  explicit LookingProgram(WaitHeuristics heuristics) {
    load_.use(heuristics);
    policy_.use(heuristics);
  }
  Action next(SimulatedMachine& machine) override {
    if (yields_) {
      yields_ = false;
      policy_.note_yield(began_ns_, machine.now_ns());
    }
    const bool found = arrived;
    if (found) {
      arrived = false;
      ++taken;
      peer->arrived = true;
    }
    const uint32_t idle_looks = policy_.note_result(found, false);
    if (PassingPolicy::is_rest_due(idle_looks) &&
        policy_.wants_yield(idle_looks, machine.now_ns())) {
      yields_ = true;
      began_ns_ = machine.now_ns();
      return {Action::Kind::yield};
    }
    return {Action::Kind::compute, 200};
  }

  LookingProgram* peer = nullptr;
  bool arrived = false;
  uint64_t taken = 0;

 private:
  ProcessorLoad load_;
  PassingPolicy policy_{load_, read_clock};
  bool yields_ = false;
  uint64_t began_ns_ = 0;
};

TEST_F(PassingPolicyTest, RestsLetAProgramOnTheSameProcessorAnswer) {
  const auto answers = [](WaitHeuristics heuristics) {
    SimulatedMachine machine(1, {});
    LookingProgram first(heuristics);
    LookingProgram second(heuristics);
    first.peer = &second;
    second.peer = &first;
    first.arrived = true;
    machine.start(first, 0);
    machine.start(second, 0);
    machine.run_until(machine.now_ns() + 100 * ms);
    return second.taken;
  };
  EXPECT_GE(answers({}), 100 * ms / (20 * us));
  EXPECT_LE(answers(without(WaitHeuristic::rests)), 50u);
}

TEST_F(PassingPolicyTest, ALookNowAndThenDoesNotYield) {
  for (uint32_t idle_looks = 1; idle_looks < 1000; ++idle_looks) {
    clock_ns += 20 * us;
    EXPECT_FALSE(PassingPolicy::is_rest_due(idle_looks) && policy.wants_yield(idle_looks, clock_ns))
        << idle_looks;
  }
}

TEST(WatchTicksTest, BackoffSparesWakeUpsWhileTheApplicationPolls) {
  const auto ticks_in_100_ms = [](bool backoff) {
    WatchTicks ticks;
    ticks.use(50 * us, backoff);
    unsigned count = 0;
    for (uint64_t passed_ns = 0; passed_ns < 100 * ms; ++count) passed_ns += ticks.next_ns(false);
    return count;
  };
  EXPECT_LE(ticks_in_100_ms(true), 140u);
  EXPECT_GE(ticks_in_100_ms(false), 2000u);
}

TEST(WatchTicksTest, TheFirstTickAfterARestartIsTheShortest) {
  WatchTicks ticks;
  ticks.use(50 * us, true);
  for (unsigned i = 0; i < 10; ++i) static_cast<void>(ticks.next_ns(false));
  EXPECT_EQ(ticks.next_ns(false), 16 * 50 * us);
  ticks.restart();
  EXPECT_EQ(ticks.next_ns(false), 50 * us);
}

TEST(WatchTicksTest, TicksAreLongerWherePeersWakeTheThread) {
  WatchTicks ticks;
  ticks.use(50 * us, true);
  for (unsigned i = 0; i < 10; ++i) static_cast<void>(ticks.next_ns(true));
  EXPECT_EQ(ticks.next_ns(true), 64 * 50 * us);
  EXPECT_TRUE(ticks.may_be_woken_in(64 * 50 * us));
  EXPECT_FALSE(ticks.may_be_woken_in(50 * us));
  // Now messages come from another transport.
  EXPECT_EQ(ticks.next_ns(false), 16 * 50 * us);
}

TEST(WatchTicksTest, TheThreadSleepsAfterAnIdleTime) {
  WatchTicks ticks;
  ticks.note_work(ms);
  EXPECT_FALSE(ticks.is_idle(ms + WatchTicks::idle_spin_ns));
  EXPECT_TRUE(ticks.is_idle(ms + WatchTicks::idle_spin_ns + 1));
}

}  // namespace
}  // namespace lintel::test

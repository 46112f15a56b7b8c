// The waiting policy in simulated schedules. For each heuristic there is a schedule in which it
// matters.
#include "core/progress/wait_policy.h"

#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lintel::test

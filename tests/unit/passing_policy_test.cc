// Looks, which do not wait, and the progress thread at the same time, in simulated time.
#include "core/progress/passing_policy.h"

#include <gtest/gtest.h>

#include "core/progress/progress_thread.h"
#include "unit/simulated_machine.h"

namespace lintel::test {
namespace {

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

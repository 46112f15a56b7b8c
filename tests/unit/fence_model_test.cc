// A model check of the fences on which sleeping threads rely (util/asymmetric_fence.h, doorbell.h,
// wait_gate.h). It tries every order in which a processor may execute the steps of a few threads.
// The thread sanitizer cannot do that, since it does not model membarrier.
//
// There are two models of memory. `strong` (x86): only a load may overtake earlier stores. `weak`
// (ARM64): a step may overtake any step on another variable, unless a fence or condition prevents
// it. In both models a store becomes visible to all other threads at once.
#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace lintel {
namespace {

enum Variable : uint8_t { message, event, sleeping, sleepers, full, variables };

enum class Kind : uint8_t {
  store,    // `value` to `variable`
  load,     // `variable` to register `place`
  fence,    // atomic_thread_fence(seq_cst)
  light,    // light_fence(): nothing, or a fence if register `place` is not 0
  barrier,  // the part of a membarrier that the kernel runs in thread `place`, at some moment
};

struct Step {
  Kind kind;
  uint8_t variable = 0;
  uint8_t value = 0;
  uint8_t place = 0;
};
using Thread = std::vector<Step>;

Step store(Variable variable, uint8_t value = 1) { return {Kind::store, variable, value}; }
Step load(Variable variable, uint8_t place) { return {Kind::load, variable, 0, place}; }
const Step fence{Kind::fence};
// Depends on the preceding load of Doorbell::full_fences into this register.
Step light(uint8_t place) { return {Kind::light, 0, 0, place}; }

enum class Model : uint8_t { strong, weak };

struct State {
  std::array<uint8_t, variables> memory{};
  std::array<uint8_t, 8> registers{};
  std::array<uint32_t, 3> executed{};  // for each thread, a bit per step
  uint32_t promised = 0;  // bit i: a load went ahead of a light fence, since register i will be 0
  auto operator<=>(const State&) const = default;
};

class Checker {
 public:
  Checker(Model model, std::vector<Thread> threads) : model_(model), threads_(std::move(threads)) {}

  // Whether any execution ends with `bad(registers)`.
  template <typename Bad>
  [[nodiscard]] bool can_end(const Bad& bad) {
    std::vector<State> open{State{}};
    std::set<State> seen{State{}};
    while (!open.empty()) {
      const State state = open.back();
      open.pop_back();
      bool ended = true;
      for (unsigned thread = 0; thread < threads_.size(); ++thread) {
        for (unsigned step = 0; step < threads_[thread].size(); ++step) {
          if (has_executed(state, thread, step)) continue;
          ended = false;
          State next = state;
          if (execute(next, thread, step) && seen.insert(next).second) open.push_back(next);
        }
      }
      if (ended && bad(state.registers)) return true;
    }
    return false;
  }

 private:
  [[nodiscard]] static bool has_executed(const State& state, unsigned thread, unsigned step) {
    return (state.executed[thread] >> step & 1) != 0;
  }
  [[nodiscard]] bool execute(State& state, unsigned thread, unsigned step) const {
    const Step& now = threads_[thread][step];
    for (unsigned before = 0; before < step; ++before)
      if (!has_executed(state, thread, before) && !may_overtake(state, thread, step, before))
        return false;
    switch (now.kind) {
      case Kind::store:
        state.memory[now.variable] = now.value;
        break;
      case Kind::load:
        state.registers[now.place] = state.memory[now.variable];
        break;
      case Kind::light:
        // After a wrong speculation, a processor would repeat the load.
        if (state.registers[now.place] != 0 && (state.promised >> now.place & 1) != 0) return false;
        break;
      case Kind::barrier: {
        // In that thread, all steps before some point have been executed, and none after it.
        const uint32_t done = state.executed[now.place];
        if ((done & (done + 1)) != 0) return false;
        break;
      }
      case Kind::fence:
        break;
    }
    state.executed[thread] |= 1u << step;
    return true;
  }
  // Whether `step` may be executed before `before`, which precedes it in the program.
  [[nodiscard]] bool may_overtake(State& state, unsigned thread, unsigned step,
                                  unsigned before) const {
    const Step& now = threads_[thread][step];
    const Step& earlier = threads_[thread][before];
    const auto waits = [](const Step& one) {
      return one.kind == Kind::fence || one.kind == Kind::barrier;
    };
    if (waits(now) || waits(earlier)) return false;
    if (now.kind == Kind::light) {
      if (earlier.kind == Kind::load && earlier.place == now.place) return false;
      return state.registers[now.place] == 0;
    }
    if (earlier.kind == Kind::light) {
      // Loads are executed speculatively before a condition is known, stores are not.
      if (model_ == Model::strong || now.kind != Kind::load) return false;
      state.promised |= 1u << earlier.place;
      return true;
    }
    if (now.variable == earlier.variable) return false;
    return model_ == Model::weak || (now.kind == Kind::load && earlier.kind == Kind::store);
  }

  const Model model_;
  const std::vector<Thread> threads_;
};

// heavy_fence() in a program with `others` other threads, whose numbers follow that of the first.
Thread heavy(unsigned others) {
  Thread steps{fence};
  for (unsigned other = 1; other <= others; ++other)
    steps.push_back({Kind::barrier, 0, 0, static_cast<uint8_t>(other)});
  steps.push_back(fence);
  return steps;
}
Thread joined(std::initializer_list<Thread> parts) {
  Thread all;
  for (const Thread& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Publishes, then tests whether a thread sleeps: Doorbell::ring_if_sleeping(), WaitGate::notify().
// `number` selects its two registers; the first one receives the flag.
Thread publisher(Variable published, Variable flag, uint8_t number) {
  return {store(published), load(full, static_cast<uint8_t>(2 * number + 1)),
          light(static_cast<uint8_t>(2 * number + 1)),
          load(flag, static_cast<uint8_t>(2 * number))};
}

class FenceModelTest : public testing::TestWithParam<Model> {
 protected:
  // The sleeping thread loads into registers 0 and 1.
  [[nodiscard]] static bool loses_wakeup(const Thread& sleeper, const Thread& sender) {
    Checker checker(GetParam(), {sleeper, sender});
    return checker.can_end([](const auto& seen) { return seen[0] == 0 && seen[2] == 0; });
  }
};

INSTANTIATE_TEST_SUITE_P(Models, FenceModelTest, testing::Values(Model::strong, Model::weak),
                         [](const auto& tested) {
                           return tested.param == Model::strong ? "Strong" : "Weak";
                         });

const Thread announces{store(sleeping)};
const Thread looks{load(message, 0)};

// Doorbell::announce_sleep(), RoomWait::arm() and await_waiting_threads() have this form.
TEST_P(FenceModelTest, AMembarrierAtTheRareSideIsEnough) {
  EXPECT_FALSE(loses_wakeup(joined({announces, heavy(1), looks}), publisher(message, sleeping, 1)));
}

TEST_P(FenceModelTest, WithoutAnyFenceAWakeupIsLost) {
  EXPECT_TRUE(loses_wakeup(joined({announces, looks}), publisher(message, sleeping, 1)));
}

// Fences of the processor alone have no effect on the other side.
TEST_P(FenceModelTest, WithoutTheMembarrierAWakeupIsLost) {
  EXPECT_TRUE(loses_wakeup(joined({announces, {fence}, looks}), publisher(message, sleeping, 1)));
}

// light_fence() prevents the compiler from exchanging the two steps.
TEST_P(FenceModelTest, WithoutTheLightFenceAWakeupIsLost) {
  const Thread exchanged{load(sleeping, 2), store(message)};
  EXPECT_TRUE(loses_wakeup(joined({announces, heavy(1), looks}), exchanged));
}

TEST_P(FenceModelTest, FullFencesAtBothSidesNeedNoMembarrier) {
  const Thread sender{store(message), fence, load(sleeping, 2)};
  EXPECT_FALSE(loses_wakeup(joined({announces, {fence}, looks}), sender));
}

// A thread sleeps on the doorbell and also waits for an event. One membarrier is enough for a
// sender and for a thread that posts events.
TEST_P(FenceModelTest, OneMembarrierServesTheDoorbellAndTheGate) {
  const auto loses = [](const Thread& fences) {
    const Thread sleeper =
        joined({{store(sleepers), store(sleeping)}, fences, {load(message, 0), load(event, 1)}});
    Checker checker(GetParam(),
                    {sleeper, publisher(message, sleeping, 1), publisher(event, sleepers, 2)});
    return checker.can_end([](const auto& seen) {
      const bool sender_lost = seen[0] == 0 && seen[2] == 0;
      const bool poster_lost = seen[1] == 0 && seen[4] == 0;
      return sender_lost || poster_lost;
    });
  };
  EXPECT_FALSE(loses(heavy(2)));
  // For this reason Doorbell::announce_sleep() executes it after WaitGate::announce().
  EXPECT_TRUE(loses({fence}));
}

}  // namespace
}  // namespace lintel

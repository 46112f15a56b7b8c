// Counters, and the order in which they trigger operations (spec 3.14, 3.16).
#include "core/events/counting_event.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace lintel {
namespace {

// Calls a function for each executed operation, records these operations in order, and counts
// releases.
class Recorder final : public TriggerExecutor {
 public:
  void execute(TriggeredOperation& operation) noexcept override {
    if (on_execute) on_execute(operation);
    const std::lock_guard guard(mutex_);
    executed_.push_back(&operation);
  }
  void release(TriggeredOperation&) noexcept override { released_.fetch_add(1); }

  [[nodiscard]] std::vector<TriggeredOperation*> executed() {
    const std::lock_guard guard(mutex_);
    return executed_;
  }
  [[nodiscard]] int released() const { return released_.load(); }

  std::function<void(TriggeredOperation&)> on_execute;

 private:
  std::mutex mutex_;
  std::vector<TriggeredOperation*> executed_;
  std::atomic<int> released_{0};
};

// Runs `body` on a stack that is too small for recursion as deep as the chains below.
void run_on_small_stack(std::function<void()> body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  const auto start = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, start, &body), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  ASSERT_EQ(pthread_attr_destroy(&attributes), 0);
}

class CountingEventTest : public testing::Test {
 protected:
  void SetUp() override {
    a.open(&gate, &recorder);
    b.open(&gate, &recorder);
  }

  static TriggeredOperation& transfer(TriggeredOperation& operation, uint64_t threshold) {
    operation.kind = TriggeredKind::movement;
    operation.threshold = threshold;
    return operation;
  }
  static TriggeredOperation& count(TriggeredOperation& operation, TriggeredKind kind,
                                   uint64_t threshold, CountingEvent& target, uint64_t success,
                                   uint64_t failure = 0) {
    operation.kind = kind;
    operation.threshold = threshold;
    operation.target_generation = target.handle.generation();
    operation.count = {&target, success, failure};
    return operation;
  }
  static TriggeredOperation& increment(TriggeredOperation& operation, uint64_t threshold,
                                       CountingEvent& target, uint64_t success = 1) {
    return count(operation, TriggeredKind::ct_inc, threshold, target, success);
  }
  static TriggeredOperation& assign(TriggeredOperation& operation, uint64_t threshold,
                                    CountingEvent& target, uint64_t success, uint64_t failure = 0) {
    return count(operation, TriggeredKind::ct_set, threshold, target, success, failure);
  }
  using Operations = std::vector<TriggeredOperation*>;

  WaitGate gate;
  Recorder recorder;
  CountingEvent a;
  CountingEvent b;
};

TEST_F(CountingEventTest, CountsModuloTwoToThe64) {
  EXPECT_EQ(a.get().success, 0u);
  EXPECT_EQ(a.get().failure, 0u);
  a.add_success(UINT64_MAX);
  a.add_success(3);
  a.add_failure(UINT64_MAX);
  a.add_failure(2);
  EXPECT_EQ(a.get().success, 2u);
  EXPECT_EQ(a.get().failure, 1u);
  a.set({7, 0});
  EXPECT_EQ(a.get().success, 7u);
  EXPECT_EQ(a.get().failure, 0u);
}

TEST_F(CountingEventTest, TestIsReachedBySuccessOrFailure) {
  EXPECT_TRUE(a.reached(0));
  EXPECT_FALSE(a.reached(3));
  a.add_success(3);
  EXPECT_TRUE(a.reached(3));
  EXPECT_FALSE(a.reached(4));
  a.add_failure(1);
  EXPECT_TRUE(a.reached(UINT64_MAX));
}

TEST_F(CountingEventTest, OperationsFireWhenReached) {
  TriggeredOperation operations[3];
  a.attach(transfer(operations[0], 2));
  a.attach(transfer(operations[1], 4));
  a.attach(transfer(operations[2], 4));
  a.add_success(1);
  a.add_failure(9);
  EXPECT_EQ(recorder.executed(), Operations{});
  a.add_success(1);
  EXPECT_EQ(recorder.executed(), Operations{&operations[0]});
  a.add_success(5);
  EXPECT_EQ(recorder.executed(), (Operations{&operations[0], &operations[1], &operations[2]}));
  a.add_success(5);
  EXPECT_EQ(recorder.executed().size(), 3u);
}

TEST_F(CountingEventTest, OneMoveFiresInOrderOfThresholdThenPosting) {
  std::mt19937 random(3);
  std::vector<TriggeredOperation> operations(500);
  Operations expected;
  for (TriggeredOperation& operation : operations) {
    a.attach(transfer(operation, 1 + random() % 20));
    expected.push_back(&operation);
  }
  std::stable_sort(expected.begin(), expected.end(),
                   [](auto* x, auto* y) { return x->threshold < y->threshold; });
  a.add_success(20);
  EXPECT_EQ(recorder.executed(), expected);
}

TEST_F(CountingEventTest, ThresholdsAlreadyReachedFireAtOnce) {
  TriggeredOperation operations[4];
  a.attach(transfer(operations[0], 0));
  EXPECT_EQ(recorder.executed().size(), 1u);
  a.set({UINT64_MAX, 0});
  a.attach(transfer(operations[1], 5));
  a.attach(transfer(operations[2], UINT64_MAX));
  EXPECT_EQ(recorder.executed().size(), 3u);
  a.attach(increment(operations[3], 1, b));
  EXPECT_EQ(b.get().success, 1u);
  EXPECT_EQ(recorder.released(), 1);
}

TEST_F(CountingEventTest, FailuresDoNotTrigger) {
  TriggeredOperation operations[2];
  a.attach(transfer(operations[0], 1));
  b.attach(count(operations[1], TriggeredKind::ct_inc, 1, a, 0, 4));
  a.add_failure(100);
  b.add_success(1);
  EXPECT_EQ(a.get().failure, 104u);
  EXPECT_EQ(recorder.executed().size(), 0u);
  a.set({1, 0});
  EXPECT_EQ(recorder.executed().size(), 1u);
}

TEST_F(CountingEventTest, SetThatLowersTheCounterSpoilsNothingReached) {
  TriggeredOperation operations[4];
  a.attach(assign(operations[0], 2, a, 0));
  a.attach(transfer(operations[1], 2));
  a.attach(transfer(operations[2], 3));
  a.attach(transfer(operations[3], 9));
  a.add_success(5);
  EXPECT_EQ(recorder.executed(), (Operations{&operations[1], &operations[2]}));
  EXPECT_EQ(a.get().success, 0u);
  // The counter is reused, as for the next round of an algorithm.
  a.attach(assign(operations[0], 2, a, 0));
  a.attach(transfer(operations[1], 2));
  a.add_success(1);
  EXPECT_EQ(recorder.executed().size(), 2u);
  a.add_success(1);
  EXPECT_EQ(recorder.executed().size(), 3u);
  EXPECT_EQ(a.get().success, 0u);
  a.add_success(9);
  EXPECT_EQ(recorder.executed().back(), &operations[3]);
}

TEST_F(CountingEventTest, TriggeredSetSetsBothCountsAndTriggers) {
  TriggeredOperation operations[2];
  b.add_failure(3);
  b.attach(transfer(operations[0], 6));
  a.attach(assign(operations[1], 1, b, 7, 2));
  a.add_success(1);
  EXPECT_EQ(b.get().success, 7u);
  EXPECT_EQ(b.get().failure, 2u);
  EXPECT_EQ(recorder.executed(), Operations{&operations[0]});
}

// Spec 3.16.6: a put and an increment have the same threshold on A, and a second put waits on B.
// The second put follows the first, whichever of the two was posted first.
TEST_F(CountingEventTest, ChainedPutFollowsTheFirst) {
  for (const bool put_first : {true, false}) {
    TriggeredOperation operations[3];
    b.attach(transfer(operations[2], b.get().success + 1));
    const uint64_t threshold = a.get().success + 1;
    if (put_first) a.attach(transfer(operations[0], threshold));
    a.attach(increment(operations[1], threshold, b));
    if (!put_first) a.attach(transfer(operations[0], threshold));
    const size_t before = recorder.executed().size();
    a.add_success(1);
    const Operations executed = recorder.executed();
    ASSERT_EQ(executed.size(), before + 2);
    EXPECT_EQ(executed[before], &operations[0]);
    EXPECT_EQ(executed[before + 1], &operations[2]);
  }
}

TEST_F(CountingEventTest, ChainOverManyCountersDoesNotRecurse) {
  constexpr size_t length = 100000;
  const auto counters = std::make_unique<CountingEvent[]>(length + 1);
  const auto operations = std::make_unique<TriggeredOperation[]>(length);
  for (size_t i = 0; i <= length; ++i) counters[i].open(&gate, &recorder);
  for (size_t i = 0; i < length; ++i)
    counters[i].attach(increment(operations[i], 1, counters[i + 1]));
  run_on_small_stack([&] { counters[0].add_success(1); });
  EXPECT_EQ(counters[length].get().success, 1u);
  EXPECT_EQ(recorder.released(), static_cast<int>(length));
}

TEST_F(CountingEventTest, CounterThatFeedsItselfDoesNotRecurse) {
  constexpr size_t length = 100000;
  const auto operations = std::make_unique<TriggeredOperation[]>(length);
  for (size_t i = 0; i < length; ++i) a.attach(increment(operations[i], i + 1, a));
  run_on_small_stack([this] { a.add_success(1); });
  EXPECT_EQ(a.get().success, length + 1);
  EXPECT_EQ(recorder.released(), static_cast<int>(length));
}

// Data movement to the process itself changes counters from within execute().
TEST_F(CountingEventTest, ExecutionThatMovesCountersDoesNotRecurse) {
  constexpr size_t length = 20000;
  std::vector<TriggeredOperation> operations(length);
  int depth = 0;
  int deepest = 0;
  recorder.on_execute = [&](TriggeredOperation&) {
    deepest = std::max(deepest, ++depth);
    a.add_success(1);
    b.add_success(1);
    --depth;
  };
  for (size_t i = 0; i < length; ++i)
    (i % 2 == 0 ? a : b).attach(transfer(operations[i], i / 2 + 1));
  a.add_success(1);
  EXPECT_EQ(deepest, 1);
  EXPECT_EQ(recorder.executed().size(), length);
}

TEST_F(CountingEventTest, FreedTargetIsLeftAlone) {
  const uint64_t handle = b.handle.begin(0);
  TriggeredOperation operations[3];
  a.attach(increment(operations[0], 1, b, 5));
  a.attach(assign(operations[1], 2, b, 9));
  a.attach(increment(operations[2], 2, b, 5));
  ASSERT_TRUE(b.handle.end(handle));
  a.add_success(1);
  a.add_success(1);
  EXPECT_EQ(b.get().success, 0u);
  EXPECT_EQ(recorder.released(), 3);
}

TEST_F(CountingEventTest, CancelledOperationsNeverRun) {
  std::vector<TriggeredOperation> operations(40);
  for (size_t i = 0; i < operations.size(); ++i) {
    a.attach(i % 2 == 0 ? transfer(operations[i], 50 - i) : increment(operations[i], 10 + i, b));
  }
  a.add_success(10);
  const size_t before = recorder.executed().size();
  const int released = recorder.released();
  std::vector<TriggeredOperation*> discarded;
  a.cancel_all([&](TriggeredOperation& operation) { discarded.push_back(&operation); });
  EXPECT_EQ(discarded.size() + before + static_cast<size_t>(released), operations.size());
  std::sort(discarded.begin(), discarded.end());
  EXPECT_EQ(std::unique(discarded.begin(), discarded.end()), discarded.end());
  a.add_success(1000);
  EXPECT_EQ(recorder.executed().size(), before);
  EXPECT_EQ(b.get().success, 0u);
  EXPECT_EQ(a.get().success, 1010u);
  // The counter remains usable.
  a.attach(transfer(operations[0], 1011));
  a.add_success(1);
  EXPECT_EQ(recorder.executed().size(), before + 1);
}

TEST_F(CountingEventTest, HoldPostponesUntilItsEnd) {
  TriggeredOperation operations[4];
  a.attach(transfer(operations[0], 1));
  a.attach(increment(operations[1], 2, b));
  b.attach(transfer(operations[2], 1));
  {
    const TriggerHold outer;
    a.add_success(1);
    {
      const TriggerHold inner;
      a.add_success(1);
      a.attach(transfer(operations[3], 2));
    }
    EXPECT_EQ(recorder.executed(), Operations{});
    EXPECT_EQ(b.get().success, 0u);
    EXPECT_EQ(a.get().success, 2u);
  }
  EXPECT_EQ(recorder.executed(), (Operations{&operations[0], &operations[3], &operations[2]}));
  EXPECT_EQ(b.get().success, 1u);
}

TEST_F(CountingEventTest, WaitersAreWokenByEveryChange) {
  const auto wakes = [](WaitGate& sleeper, auto change) {
    const uint32_t seen = sleeper.prepare();
    change();
    const uint32_t now = sleeper.prepare();
    sleeper.finish();
    sleeper.finish();
    return now != seen;
  };
  EXPECT_FALSE(wakes(gate, [] {}));
  EXPECT_TRUE(wakes(gate, [this] { a.add_success(1); }));
  EXPECT_TRUE(wakes(gate, [this] { a.add_failure(1); }));
  EXPECT_TRUE(wakes(gate, [this] { a.set({0, 0}); }));
  WaitGate other;
  b.open(&other, &recorder);
  TriggeredOperation operations[3];
  a.attach(increment(operations[0], 1, b));  // the only one at this threshold
  a.attach(increment(operations[1], 2, b));  // one of two at this threshold
  a.attach(transfer(operations[2], 2));
  EXPECT_TRUE(wakes(other, [this] { a.add_success(1); }));
  EXPECT_TRUE(wakes(other, [this] { a.add_success(1); }));
  EXPECT_EQ(b.get().success, 2u);
}

}  // namespace
}  // namespace lintel

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

#include "core/events/trigger_queue.h"
#include "match_test_timing.h"

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

class CountingEventTest : public ::testing::Test {
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

// The order of pending triggered operations, compared with a stable sort.

TEST(TriggerQueueTest, EmptyQueueHasNoThreshold) {
  TriggerQueue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.next_threshold(), TriggerQueue::no_threshold);
  EXPECT_EQ(queue.pop_reached(UINT64_MAX), nullptr);
}

TEST(TriggerQueueTest, OperationsWaitForTheirThreshold) {
  TriggerQueue queue;
  TriggeredOperation operations[3];
  operations[0].threshold = 5;
  operations[1].threshold = UINT64_MAX;
  operations[2].threshold = 0;
  for (TriggeredOperation& operation : operations) queue.push(operation);
  EXPECT_EQ(queue.next_threshold(), 0u);
  EXPECT_EQ(queue.pop_reached(4), &operations[2]);
  EXPECT_EQ(queue.next_threshold(), 5u);
  EXPECT_EQ(queue.pop_reached(4), nullptr);
  EXPECT_EQ(queue.pop_reached(5), &operations[0]);
  EXPECT_EQ(queue.pop_reached(UINT64_MAX - 1), nullptr);
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(queue.pop_reached(UINT64_MAX), &operations[1]);
  EXPECT_TRUE(queue.empty());
}

// Random pushes and pops, compared with a vector in order of posting.
void compare_with_model(unsigned seed, uint64_t thresholds, unsigned ascending_percent) {
  std::mt19937 random(seed);
  TriggerQueue queue;
  std::vector<TriggeredOperation> operations(2000);
  std::vector<TriggeredOperation*> free;
  for (TriggeredOperation& operation : operations) free.push_back(&operation);
  std::vector<TriggeredOperation*> model;
  uint64_t last = 0;
  for (int step = 0; step < 20000; ++step) {
    const bool grow = (step / 2000) % 2 == 0;
    if (!free.empty() && random() % 10 < (grow ? 8u : 2u)) {
      TriggeredOperation* const operation = free.back();
      free.pop_back();
      const bool ascending = random() % 100 < ascending_percent;
      last = ascending ? last + random() % 2 : random() % thresholds;
      operation->threshold = last;
      queue.push(*operation);
      model.push_back(operation);
    } else {
      const uint64_t value = random() % (thresholds + 10);
      const auto first = std::min_element(
          model.begin(), model.end(),
          [](const auto* a, const auto* b) { return a->threshold < b->threshold; });
      TriggeredOperation* const popped = queue.pop_reached(value);
      if (first == model.end() || (*first)->threshold > value) {
        ASSERT_EQ(popped, nullptr);
      } else {
        ASSERT_EQ(popped, *first);
        free.push_back(popped);
        model.erase(first);
      }
    }
    ASSERT_EQ(queue.empty(), model.empty());
  }
}

TEST(TriggerQueueTest, RandomOrderAgreesWithModel) {
  compare_with_model(1, 1000000, 0);
  compare_with_model(2, 50, 0);  // many equal thresholds
}

TEST(TriggerQueueTest, MostlyAscendingOrderAgreesWithModel) {
  compare_with_model(3, 3000, 90);
  compare_with_model(4, 10, 50);
}

TEST(TriggerQueueTest, EqualThresholdsComeInPostingOrder) {
  TriggerQueue queue;
  std::vector<TriggeredOperation> operations(300);
  // The thresholds are 9, 5, 9 repeatedly, so equal ones are not always neighbours.
  for (size_t i = 0; i < operations.size(); ++i) {
    operations[i].threshold = i % 3 == 1 ? 5 : 9;
    queue.push(operations[i]);
  }
  for (const size_t wanted : {5u, 9u}) {
    for (TriggeredOperation& operation : operations) {
      if (operation.threshold == wanted) {
        ASSERT_EQ(queue.pop_reached(9), &operation);
      }
    }
  }
  EXPECT_TRUE(queue.empty());
}

// Nanoseconds to push and pop one of `count` operations: the fastest of several rounds. A round is
// shorter than a time slice, so that other programs have little influence.
[[nodiscard]] double cost(std::vector<TriggeredOperation>& operations, size_t count) {
  double fastest = 0;
  for (int round = 0; round < 25; ++round) {
    const double now = testing::median_ns(1, static_cast<int>(count), [&] {
      TriggerQueue queue;
      for (size_t i = 0; i < count; ++i) queue.push(operations[i]);
      for (size_t i = 0; i < count; ++i) testing::keep(queue.pop_reached(UINT64_MAX));
    });
    if (round == 0 || now < fastest) fastest = now;
  }
  return fastest;
}

// A queue with a linear search would be a hundred times slower with ten thousand operations than
// with a hundred. Logarithmic costs and cache misses explain far less.
TEST(TriggerQueueTest, CostDoesNotGrowWithTheQueue) {
  constexpr size_t many = 10000;
  std::vector<TriggeredOperation> operations(many);
  std::mt19937 random(5);
  const auto check = [&](const char* order, auto threshold) {
    for (size_t i = 0; i < many; ++i) operations[i].threshold = threshold(i);
    const double few = cost(operations, 100);
    EXPECT_LT(cost(operations, many), 30 * few) << order;
  };
  check("ascending", [](size_t i) { return i; });
  check("descending", [](size_t i) { return many - i; });
  check("random", [&random](size_t) { return random(); });
  check("equal", [](size_t) { return 1; });
}

}  // namespace
}  // namespace lintel

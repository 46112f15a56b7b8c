// The order of pending triggered operations, compared with a stable sort.
#include "core/events/trigger_queue.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "match_test_timing.h"

namespace lintel {
namespace {

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

// Counters that several threads change at the same time (spec 2.9, 3.16). tests/model has more.
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/events/counting_event.h"
#include "support/deadlines.h"

namespace lintel {
namespace {

constexpr unsigned thread_count = 4;
constexpr uint64_t rounds_per_thread = 20000 / test::slowdown;

// Records the order of execution. The counter makes only one call at a time, so the record needs no
// lock; the thread sanitizer would report a violation.
class Notes final : public TriggerExecutor {
 public:
  void execute(TriggeredOperation& operation) noexcept override { order.push_back(&operation); }
  void release(TriggeredOperation&) noexcept override { released.fetch_add(1); }

  std::vector<TriggeredOperation*> order;
  std::atomic<uint64_t> released{0};
};

void in_threads(unsigned count, auto body) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

[[nodiscard]] std::vector<TriggeredOperation> transfers(uint64_t count) {
  std::vector<TriggeredOperation> operations(count);
  for (uint64_t i = 0; i < count; ++i) operations[i].threshold = i + 1;
  return operations;
}

TEST(CountingEventThreadsTest, OperationsRunOnceAndInOrder) {
  WaitGate gate;
  Notes notes;
  CountingEvent counter;
  counter.open(&gate, &notes);
  constexpr uint64_t total = thread_count * rounds_per_thread;
  std::vector<TriggeredOperation> operations = transfers(total);
  for (TriggeredOperation& operation : operations) counter.attach(operation);
  in_threads(thread_count, [&](unsigned) {
    for (uint64_t i = 0; i < rounds_per_thread; ++i) counter.add_success(1);
  });
  counter.cancel_all([](TriggeredOperation&) { FAIL() << "left behind"; });
  ASSERT_EQ(notes.order.size(), total);
  for (uint64_t i = 0; i < total; ++i) ASSERT_EQ(notes.order[i], &operations[i]);
}

// A set triggered at a lower threshold must not take effect after one at a higher threshold.
TEST(CountingEventThreadsTest, TriggeredSetsTakeEffectInOrder) {
  WaitGate gate;
  Notes notes;
  CountingEvent counter;
  CountingEvent target;
  counter.open(&gate, &notes);
  target.open(&gate, &notes);
  constexpr uint64_t total = thread_count * rounds_per_thread;
  std::vector<TriggeredOperation> operations = transfers(total);
  for (TriggeredOperation& operation : operations) {
    operation.kind = TriggeredKind::ct_set;
    operation.count = {&target, operation.threshold, 0};
    counter.attach(operation);
  }
  std::atomic<bool> done{false};
  std::thread observer([&] {
    uint64_t last = 0;
    while (!done.load()) {
      const uint64_t now = target.get().success;
      ASSERT_GE(now, last);
      last = now;
    }
  });
  in_threads(thread_count, [&](unsigned number) {
    for (uint64_t i = 0; i < rounds_per_thread / (number + 1); ++i) counter.add_success(number + 1);
  });
  counter.add_success(total);
  done = true;
  observer.join();
  EXPECT_EQ(target.get().success, total);
  EXPECT_EQ(notes.released, total);
}

// While a thread executes operations, operations reached by other threads wait until it has
// finished.
TEST(CountingEventThreadsTest, OperationsReachedDuringAnExecutionComeAfterIt) {
  class Slow final : public TriggerExecutor {
   public:
    void execute(TriggeredOperation&) noexcept override {
      started = true;
      while (!go_on) std::this_thread::yield();
      seen = watched->get().success;
    }
    void release(TriggeredOperation&) noexcept override {}
    CountingEvent* watched = nullptr;
    uint64_t seen = UINT64_MAX;
    std::atomic<bool> started{false};
    std::atomic<bool> go_on{false};
  } slow;
  WaitGate gate;
  CountingEvent counter;
  CountingEvent target;
  counter.open(&gate, &slow);
  target.open(&gate, &slow);
  slow.watched = &target;
  std::vector<TriggeredOperation> operations = transfers(2);
  operations[1].kind = TriggeredKind::ct_set;
  operations[1].count = {&target, 7, 0};
  for (TriggeredOperation& operation : operations) counter.attach(operation);
  std::thread executing([&counter] { counter.add_success(1); });
  while (!slow.started) std::this_thread::yield();
  counter.add_success(1);  // hands the operation to the executing thread and returns
  EXPECT_EQ(target.get().success, 0u);
  slow.go_on = true;
  executing.join();
  EXPECT_EQ(slow.seen, 0u);
  EXPECT_EQ(target.get().success, 7u);
}

// Two counters that increase each other, from several threads: no deadlock, no lost count.
TEST(CountingEventThreadsTest, CountersThatFeedEachOther) {
  WaitGate gate;
  Notes notes;
  CountingEvent counters[2];
  for (CountingEvent& counter : counters) counter.open(&gate, &notes);
  constexpr uint64_t total = thread_count / 2 * rounds_per_thread;
  std::vector<TriggeredOperation> operations(2 * total);
  for (uint64_t i = 0; i < total; ++i) {
    for (const unsigned side : {0u, 1u}) {
      TriggeredOperation& operation = operations[2 * i + side];
      operation.kind = TriggeredKind::ct_inc;
      operation.threshold = i + 1;
      operation.count = {&counters[1 - side], 1, 0};
      counters[side].attach(operation);
    }
  }
  in_threads(thread_count, [&](unsigned number) {
    for (uint64_t i = 0; i < rounds_per_thread; ++i) counters[number % 2].add_success(1);
  });
  // `total` increases of each side came from outside; each of its triggered operations increased
  // the other.
  for (CountingEvent& counter : counters) {
    counter.cancel_all([](TriggeredOperation&) { FAIL() << "left behind"; });
    EXPECT_EQ(counter.get().success, 2 * total);
  }
  EXPECT_EQ(notes.released, 2 * total);
}

}  // namespace
}  // namespace lintel

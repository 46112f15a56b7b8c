#include "util/other_threads.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/progress/long_call.h"
#include "util/clock.h"

namespace lintel::test {
namespace {

uint64_t processor_ns_of(std::thread& thread) {
  clockid_t clock = 0;
  timespec time{};
  EXPECT_EQ(pthread_getcpuclockid(thread.native_handle(), &clock), 0);
  EXPECT_EQ(clock_gettime(clock, &time), 0);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

TEST(OtherThreadsTest, AThreadThatComputesRunsForThatTime) {
  std::atomic<bool> stop{false};
  std::atomic<bool> runs{false};
  std::thread busy([&] {
    while (!stop.load(std::memory_order_relaxed)) runs.store(true, std::memory_order_relaxed);
  });
  while (!runs.load()) std::this_thread::yield();
  const uint64_t start_ns = now_ns();
  const uint64_t before_ns = processor_ns_of(busy);
  OtherThreads::let_run(3'000'000);
  const uint64_t ran_ns = processor_ns_of(busy) - before_ns;
  // On a machine without a free processor the limit of five seconds may end it.
  EXPECT_TRUE(ran_ns >= 3'000'000 || now_ns() - start_ns >= 5'000'000'000) << ran_ns;
  stop.store(true);
  busy.join();
}

// A thread that ends while the kernel lists threads may cut the list off.
TEST(OtherThreadsTest, AThreadIsWaitedForThoughOthersEndMeanwhile) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> stop{false};
    std::atomic<bool> stop_first{false};
    std::atomic<int> running{0};
    const auto run_until = [&running](const std::atomic<bool>& end) {
      running.fetch_add(1);
      while (!end.load(std::memory_order_relaxed)) continue;
    };
    std::vector<std::thread> first;
    for (int i = 0; i < 6; ++i) first.emplace_back(run_until, std::cref(stop_first));
    std::thread last(run_until, std::cref(stop));
    while (running.load() < 7) std::this_thread::yield();
    const uint64_t before_ns = processor_ns_of(last);
    stop_first.store(true);
    OtherThreads::let_run(1'000'000);
    EXPECT_GE(processor_ns_of(last) - before_ns, 1'000'000u) << "round " << round;
    for (std::thread& thread : first) thread.join();
    stop.store(true);
    last.join();
  }
}

// A host that stops a virtual processor lets the processor time of a thread jump by milliseconds.
TEST(OtherThreadsTest, AJumpOfTheProcessorTimeProvesLittle) {
  ProvenRunTime run(1'000);
  EXPECT_EQ(run.add_sample(1'000), 0u);
  EXPECT_EQ(run.add_sample(51'000), 50'000u);
  EXPECT_EQ(run.add_sample(9'000'000), 50'000u + ProvenRunTime::most_of_sample_ns);
  EXPECT_EQ(run.add_sample(9'000'001), 50'001u + ProvenRunTime::most_of_sample_ns);
  EXPECT_LE(4 * ProvenRunTime::most_of_sample_ns, LongCalls::shortest_long_ns);
}

TEST(OtherThreadsTest, AThreadThatSleepsIsNotWaitedFor) {
  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;
  std::thread asleep([&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stop; });
  });
  // More processor time than it can get while it sleeps: the limit would end the wait.
  uint64_t shortest_ns = UINT64_MAX;
  for (int i = 0; i < 5 && shortest_ns >= 1'000'000'000; ++i) {
    const uint64_t start_ns = now_ns();
    OtherThreads::let_run(1'000'000'000);
    shortest_ns = std::min(shortest_ns, now_ns() - start_ns);
  }
  EXPECT_LT(shortest_ns, 1'000'000'000u);
  {
    const std::lock_guard guard(mutex);
    stop = true;
  }
  changed.notify_one();
  asleep.join();
}

}  // namespace
}  // namespace lintel::test

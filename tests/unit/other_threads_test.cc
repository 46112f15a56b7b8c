#include "util/other_threads.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

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
  // On a machine without a free processor the limit of a second may end it.
  EXPECT_TRUE(ran_ns >= 3'000'000 || now_ns() - start_ns >= 1'000'000'000) << ran_ns;
  stop.store(true);
  busy.join();
}

TEST(OtherThreadsTest, AThreadThatSleepsIsNotWaitedFor) {
  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;
  std::thread asleep([&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stop; });
  });
  // More processor time than it can get while it sleeps. The limit of a second would end the wait.
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

// When threads on crowded processors search for another one, and the effect of a search on later
// ones.
#include "core/progress/relocation.h"

#include <sched.h>

#include <gtest/gtest.h>

#include "core/progress/processor_load.h"

namespace lintel::test {
namespace {

constexpr uint64_t us = 1'000;
constexpr uint64_t ms = 1'000'000;

// The processor is crowded from `now_ns` on. Returns when the next search is due.
uint64_t next_search(RelocationSchedule& schedule, uint64_t now_ns) {
  const uint64_t give_up = now_ns + 10'000 * ms;
  while (now_ns < give_up && !schedule.is_due(now_ns)) now_ns += 10 * us;
  return now_ns;
}

TEST(RelocationScheduleTest, TheFirstSearchFollowsAMillisecondOfCrowding) {
  RelocationSchedule schedule;
  const uint64_t start = 5'000 * ms;
  const uint64_t due = next_search(schedule, start);
  EXPECT_GE(due, start + ms);
  EXPECT_LE(due, start + 2 * ms);
}

TEST(RelocationScheduleTest, ShortCrowdsCauseNoSearch) {
  RelocationSchedule schedule;
  for (uint64_t start = 5'000 * ms; start < 5'100 * ms; start += 3 * ms)
    for (uint64_t now = start; now < start + 900 * us; now += 10 * us)
      EXPECT_FALSE(schedule.is_due(now));
}

TEST(RelocationScheduleTest, SearchesOfABusyMachineBecomeRare) {
  RelocationSchedule schedule;
  uint64_t now = 5'000 * ms;
  unsigned searches = 0;
  for (const uint64_t end = now + 20'000 * ms; now < end; ++searches) {
    now = next_search(schedule, now);
    schedule.note_search(SearchResult::busy, now);
  }
  EXPECT_GE(searches, 15u);
  EXPECT_LE(searches, 32u);
}

TEST(RelocationScheduleTest, AMoveBringsTheShortIntervalBack) {
  RelocationSchedule schedule;
  uint64_t now = 5'000 * ms;
  for (int i = 0; i < 8; ++i) {
    now = next_search(schedule, now);
    schedule.note_search(SearchResult::busy, now);
  }
  EXPECT_GT(next_search(schedule, now), now + 100 * ms);
  schedule.note_search(SearchResult::moved, now);
  EXPECT_LE(next_search(schedule, now), now + 2 * ms + 10 * us);
}

TEST(RelocationScheduleTest, TwoProcessesDoNotSearchInStep) {
  RelocationSchedule first;
  RelocationSchedule second;
  uint64_t a = 5'000 * ms;
  uint64_t b = a + 3 * us;
  unsigned together = 0;
  for (int i = 0; i < 100; ++i) {
    a = next_search(first, a);
    b = next_search(second, b);
    if (a < b + 100 * us && b < a + 100 * us) ++together;
    first.note_search(SearchResult::no_other, a);
    second.note_search(SearchResult::no_other, b);
  }
  EXPECT_LE(together, 40u);
}

TEST(ProcessorLoadTest, AThreadIsWantedOnlyWhileYieldsAreSlow) {
  ProcessorLoad load;
  for (int i = 0; i < 3; ++i) load.note_yield(ms, ms + 10 * us);
  EXPECT_TRUE(load.is_wanted_now());
  load.note_yield(ms, ms + us / 2);
  EXPECT_TRUE(load.is_crowded());
  EXPECT_FALSE(load.is_wanted_now());
}

TEST(RelocationTest, ASearchLeavesTheAffinityMaskAsItWas) {
  cpu_set_t before;
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  for (int i = 0; i < 5; ++i) static_cast<void>(move_to_free_processor());
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(RelocationTest, AThreadBoundToOneProcessorStaysThere) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const int cpu = sched_getcpu();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(move_to_free_processor(), SearchResult::no_other);
  EXPECT_EQ(sched_getcpu(), cpu);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace lintel::test

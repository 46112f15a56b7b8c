// How long polling is worth while, by what waking has cost.
#include "core/progress/wake_cost.h"

#include <gtest/gtest.h>

namespace lintel::test {
namespace {

constexpr uint64_t us = 1'000;
constexpr uint64_t asleep = 5'000'000;
constexpr uint64_t rung = asleep + 700 * us;

void wake(WakeCost& cost, uint64_t took_ns, int times) {
  for (int i = 0; i < times; ++i) cost.note(rung, asleep, rung + took_ns);
}

TEST(WakeCostTest, NothingIsKnownAtFirst) {
  const WakeCost cost;
  EXPECT_EQ(cost.worth_polling_ns(), 0u);
}

TEST(WakeCostTest, FollowsTheQuickest) {
  WakeCost cost;
  wake(cost, 100 * us, 40);
  EXPECT_GT(cost.worth_polling_ns(), 190 * us);
  EXPECT_LE(cost.worth_polling_ns(), 200 * us);
  wake(cost, 6 * us, 1);
  EXPECT_EQ(cost.worth_polling_ns(), 12 * us);
}

TEST(WakeCostTest, OneSlowWakingAmongQuickOnesChangesLittle) {
  WakeCost cost;
  for (int i = 0; i < 100; ++i) {
    wake(cost, 6 * us, 4);
    wake(cost, 2'000 * us, 1);
  }
  EXPECT_LT(cost.worth_polling_ns(), 2 * (6 * us + WakeCost::most_ns / 8));
}

TEST(WakeCostTest, IsBounded) {
  WakeCost cost;
  wake(cost, 10'000'000 * us, 200);
  EXPECT_GT(cost.worth_polling_ns(), 490 * us);
  EXPECT_LE(cost.worth_polling_ns(), 2 * WakeCost::most_ns);
}

// The time at which a bell was rung comes from a peer.
TEST(WakeCostTest, TimesOutsideTheSleepAreIgnored) {
  WakeCost cost;
  wake(cost, 50 * us, 100);
  const uint64_t before = cost.worth_polling_ns();
  cost.note(0, asleep, asleep + us);
  cost.note(asleep - 1, asleep, asleep + us);
  cost.note(asleep + 2 * us, asleep, asleep + us);
  cost.note(UINT64_MAX, asleep, asleep + us);
  EXPECT_EQ(cost.worth_polling_ns(), before);
}

}  // namespace
}  // namespace lintel::test

// When membarrier counts as slow, by simulated times.
#include "util/fence_cost.h"

#include <gtest/gtest.h>

namespace lintel::test {
namespace {

bool is_dear_after(FenceCost& cost, unsigned fences, uint64_t took_ns) {
  bool dear = false;
  for (unsigned i = 0; i < fences; ++i) dear = cost.note(took_ns);
  return dear;
}

TEST(FenceCostTest, CostlyFencesAreNoticed) {
  FenceCost cost;
  EXPECT_TRUE(is_dear_after(cost, 40, 30'000));
}

TEST(FenceCostTest, TheFirstFewAreNotJudged) {
  FenceCost cost;
  EXPECT_FALSE(is_dear_after(cost, FenceCost::notes_until_judged, 90'000));
}

TEST(FenceCostTest, OneSlowFenceAmongQuickOnesTellsNothing) {
  FenceCost cost;
  EXPECT_FALSE(is_dear_after(cost, 100, 1'000));
  EXPECT_FALSE(is_dear_after(cost, 1, 60'000));
}

}  // namespace
}  // namespace lintel::test

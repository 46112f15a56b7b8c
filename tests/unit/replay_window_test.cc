// A counter is accepted once. Late ones are accepted, too old ones are not.
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "reliable/frame_seal.h"

namespace lintel {
namespace {

bool take(ReplayWindow& window, uint64_t counter) {
  if (!window.may_be_new(counter)) return false;
  window.mark(counter);
  return true;
}

TEST(ReplayWindowTest, TakesEachCounterOnce) {
  ReplayWindow window;
  for (uint64_t counter = 1; counter < 10'000; ++counter) {
    EXPECT_TRUE(take(window, counter));
    EXPECT_FALSE(take(window, counter));
  }
  EXPECT_FALSE(take(window, 0)) << "no frame has it";
}

TEST(ReplayWindowTest, TakesLateOnesUntilTheyAreTooOld) {
  ReplayWindow window;
  EXPECT_TRUE(take(window, 5'000));
  EXPECT_TRUE(take(window, 5'000 - ReplayWindow::frames + 1));
  EXPECT_FALSE(take(window, 5'000 - ReplayWindow::frames));
  EXPECT_TRUE(take(window, 4'999));
  EXPECT_FALSE(take(window, 4'999));
}

TEST(ReplayWindowTest, FindsTheWholeCounterAcrossHalves) {
  const uint64_t near_end = (uint64_t{7} << 32) - 3;
  ReplayWindow window(near_end);
  for (uint64_t counter = near_end; counter < near_end + 10; ++counter) {
    EXPECT_EQ(window.whole(static_cast<uint32_t>(counter)), counter);
    EXPECT_TRUE(take(window, counter));
  }
  EXPECT_EQ(window.whole(static_cast<uint32_t>(near_end)), near_end) << "a late one";
  EXPECT_EQ(ReplayWindow().whole(0xffff'ffff), 0u) << "there was none before the first";
}

// Compared with a set of all accepted counters.
TEST(ReplayWindowTest, NeverTakesOneTwiceInAnyOrder) {
  std::mt19937_64 random(7);
  ReplayWindow window;
  std::set<uint64_t> taken;
  uint64_t highest = 0;
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t back = random() % 3 == 0 ? random() % (2 * ReplayWindow::frames) : random() % 4;
    const uint64_t ahead = random() % 1'000 == 0 ? random() % 20'000 : random() % 3;
    const uint64_t counter = highest + ahead > back ? highest + ahead - back : 1;
    const bool is_new = taken.count(counter) == 0;
    const bool in_window = counter > highest || highest - counter < ReplayWindow::frames;
    EXPECT_EQ(take(window, counter), is_new && in_window) << counter << " after " << highest;
    if (is_new && in_window) taken.insert(counter);
    highest = std::max(highest, counter);
  }
}

}  // namespace
}  // namespace lintel

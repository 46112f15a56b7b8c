// LiveHandle: one comparison decides whether a handle names an existing object.
#include "core/events/live_handle.h"

#include <gtest/gtest.h>

namespace lintel {
namespace {

constexpr uint64_t family = uint64_t{0x4102} << 48 | 7;  // type, interface, incarnation, index

TEST(LiveHandleTest, AnObjectThatWasNeverUsedHasNoHandle) {
  const LiveHandle handle;
  EXPECT_FALSE(handle.is(0));
  EXPECT_FALSE(handle.is(family));
}

TEST(LiveHandleTest, IsNamedFromItsBeginToItsEnd) {
  LiveHandle handle;
  const uint64_t first = handle.begin(family);
  EXPECT_EQ(first & ~(uint64_t{handle_generation_mask} << handle_index_bits), family);
  EXPECT_TRUE(handle.is(first));
  EXPECT_TRUE(handle.end(first));
  EXPECT_FALSE(handle.is(first));
  const uint64_t second = handle.begin(family);
  EXPECT_NE(second, first);
  EXPECT_FALSE(handle.is(first));
  EXPECT_TRUE(handle.is(second));
}

TEST(LiveHandleTest, EndsOnce) {
  LiveHandle handle;
  const uint64_t first = handle.begin(family);
  EXPECT_FALSE(handle.end(family));
  EXPECT_TRUE(handle.end(first));
  EXPECT_FALSE(handle.end(first));
}

TEST(LiveHandleTest, NoHandleWithItsIndexNamesAFreeObject) {
  LiveHandle handle;
  const uint64_t first = handle.begin(family);
  ASSERT_TRUE(handle.end(first));
  for (uint64_t generation = 0; generation <= handle_generation_mask; generation += 1)
    ASSERT_FALSE(handle.is(family | generation << handle_index_bits));
}

TEST(LiveHandleTest, TheGenerationTellsLivesAndTheirEndsApart) {
  LiveHandle handle;
  const uint32_t never = handle.generation();
  const uint64_t first = handle.begin(family);
  const uint32_t alive = handle.generation();
  ASSERT_TRUE(handle.end(first));
  const uint32_t ended = handle.generation();
  static_cast<void>(handle.begin(family));
  EXPECT_NE(never, alive);
  EXPECT_NE(alive, ended);
  EXPECT_NE(ended, handle.generation());
  EXPECT_NE(alive, handle.generation());
}

TEST(LiveHandleTest, GenerationsWrapWithinTheirBits) {
  LiveHandle handle;
  for (uint32_t i = 0; i <= handle_generation_mask / 2 + 1; ++i) {
    const uint64_t now = handle.begin(family);
    ASSERT_EQ(now & ~(uint64_t{handle_generation_mask} << handle_index_bits), family);
    ASSERT_TRUE(handle.end(now));
  }
}

}  // namespace
}  // namespace lintel

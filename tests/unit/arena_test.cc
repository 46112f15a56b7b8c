// Pools of objects, and the memory that they give back.
#include "util/arena.h"

#include <sys/mman.h>

#include <atomic>
#include <vector>

#include <gtest/gtest.h>

namespace lintel::test {
namespace {

struct Page {
  std::atomic<uint32_t> next_free{0};
  std::byte bytes[4092];
};
static_assert(sizeof(Page) == 4096);

class ArenaTest : public ::testing::Test {
 protected:
  static constexpr uint32_t capacity = 1024;
  ArenaTest() { EXPECT_TRUE(arena_.open(capacity)); }
  void use(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      held_.push_back(arena_.allocate());
      arena_.at(held_.back()).bytes[0] = std::byte{1};
    }
  }
  [[nodiscard]] size_t resident_pages() const {
    std::vector<unsigned char> pages(capacity);
    EXPECT_EQ(mincore(&arena_.at(0), capacity * sizeof(Page), pages.data()), 0);
    size_t count = 0;
    for (const unsigned char page : pages) count += page & 1u;
    return count;
  }
  Arena<Page> arena_;
  std::vector<uint32_t> held_;
};

TEST_F(ArenaTest, AllUnusedMemoryIsGivenBack) {
  use(capacity);
  EXPECT_EQ(resident_pages(), capacity);
  for (const uint32_t index : held_) arena_.release(index);
  arena_.trim();
  EXPECT_EQ(resident_pages(), 0u);
  EXPECT_EQ(arena_.high_water(), 0u);
  held_.clear();
  use(capacity);
  EXPECT_EQ(arena_.allocate(), arena_.no_index);
}

TEST_F(ArenaTest, ObjectsInUseStayWhereTheyAre) {
  use(capacity);
  constexpr uint32_t last = 100;
  for (const uint32_t index : held_)
    if (index != 5 && index != last) arena_.release(index);
  arena_.trim();
  EXPECT_EQ(arena_.high_water(), last + 1);
  EXPECT_LE(resident_pages(), last + 1);
  EXPECT_EQ(arena_.at(5).bytes[0], std::byte{1});
  EXPECT_EQ(arena_.at(last).bytes[0], std::byte{1});
  // Those that are free, each once, and then fresh ones.
  std::vector<bool> seen(capacity);
  for (uint32_t i = 0; i < capacity - 2; ++i) {
    const uint32_t index = arena_.allocate();
    ASSERT_LT(index, capacity);
    EXPECT_FALSE(seen[index] || index == 5 || index == last) << index;
    seen[index] = true;
  }
  EXPECT_EQ(arena_.allocate(), arena_.no_index);
}

}  // namespace
}  // namespace lintel::test

// Pools of objects, and the memory that they give back.
#include "util/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "core/events/live_handle.h"
#include "util/address_space.h"

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
  // A page of the system may hold several objects.
  EXPECT_LE(resident_pages(), last + system_page_bytes() / sizeof(Page));
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

constexpr uint32_t wanted = 1u << 20;

// A stream would take memory for the time of the call.
uint64_t bytes_in_use() {
  char text[128] = {};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  return length > 0 ? std::strtoull(text, nullptr, 10) * 4096 : 0;
}

// In a child, whose limit ends with it.
bool fits_where_a_gibibyte_is_left() {
  const rlimit limit{bytes_in_use() + (rlim_t{1} << 30), RLIM_INFINITY};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return false;
  const uint64_t of_small = uint64_t{fitting_capacity(wanted, 64)} * 64;
  const uint64_t of_large = uint64_t{fitting_capacity(wanted, 8192)} * 8192;
  return of_small <= uint64_t{1} << 25 && of_large <= uint64_t{1} << 25 &&
         of_large > uint64_t{1} << 24 && fitting_capacity(1000, 64) == 1000 &&
         fitting_capacity(wanted, uint64_t{1} << 40) == 1;
}

TEST(AddressSpaceTest, PoolsAreCutToWhatTheLimitLeaves) {
  const pid_t child = fork();
  if (child == 0) _exit(fits_where_a_gibibyte_is_left() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(AddressSpaceTest, WithoutALimitNothingIsCut) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  if (limit.rlim_cur == RLIM_INFINITY) {
    EXPECT_EQ(fitting_capacity(wanted, 8192), wanted);
  }
}

// LiveHandle: one comparison decides whether a handle names an existing object.

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
}  // namespace lintel::test

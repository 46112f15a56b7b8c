// The states of regions in the registration cache, without a device or the kernel.
#include "registration/region_table.h"

#include <memory>
#include <vector>

#include "registration_test_support.h"

namespace lintel::test {
namespace {

class RegionTableTest : public testing::Test {
 protected:
  RegionTableTest() { table.add(owner); }

  Region& made(MemoryRange range, bool writable = true) {
    regions.push_back(std::make_unique<Region>(owner, writable));
    table.begin(*regions.back(), range);
    return *regions.back();
  }
  // A region that is kept and idle.
  Region& idle(MemoryRange range, bool writable = true) {
    Region& region = made(range, writable);
    EXPECT_TRUE(table.keep(region));
    EXPECT_FALSE(table.give_back(region));
    return region;
  }
  std::vector<Region*> retired() {
    std::vector<Region*> all;
    while (Region* const region = table.take_retired()) {
      all.push_back(region);
      table.note_deregistered(owner);
    }
    return all;
  }

  FakeRegistrar registrar;
  RegionOwner owner{registrar, 8};
  RegionTable table{3, 100};
  std::vector<std::unique_ptr<Region>> regions;
};

TEST_F(RegionTableTest, ALeaseIsServedByARegionThatContainsTheRange) {
  Region& region = idle({10, 20});
  EXPECT_EQ(table.lease(owner, {12, 20}, true), &region);
  EXPECT_EQ(table.lease(owner, {12, 21}, true), nullptr);
  EXPECT_FALSE(table.give_back(region));
  EXPECT_EQ(table.counters().hits, 1u);
}

TEST_F(RegionTableTest, ReadOnlyRegionsServeNoWriting) {
  Region& region = idle({10, 20}, false);
  EXPECT_EQ(table.lease(owner, {10, 20}, true), nullptr);
  EXPECT_EQ(table.lease(owner, {10, 20}, false), &region);
  EXPECT_FALSE(table.give_back(region));
}

TEST_F(RegionTableTest, TheLeastRecentlyUsedMakesRoom) {
  Region& first = idle({10, 20});
  Region& second = idle({30, 40});
  idle({50, 60});
  EXPECT_EQ(table.lease(owner, {10, 20}, true), &first);
  EXPECT_FALSE(table.give_back(first));
  EXPECT_TRUE(table.keep(made({70, 80})));
  EXPECT_EQ(retired(), std::vector<Region*>{&second});
  EXPECT_EQ(table.counters().evictions, 1u);
}

TEST_F(RegionTableTest, ALeasedRegionIsNotEvictedAndRetiresLater) {
  Region& region = made({10, 20});
  EXPECT_TRUE(table.keep(region));
  EXPECT_EQ(table.evict(100), RegionTable::Evicted::none);
  Region& larger = made({0, 30});
  EXPECT_TRUE(table.keep(larger));
  EXPECT_TRUE(retired().empty());
  EXPECT_TRUE(table.give_back(region));
  EXPECT_EQ(retired(), std::vector<Region*>{&region});
}

TEST_F(RegionTableTest, WhatAnotherThreadRegisteredFirstServesItsCallerAlone) {
  Region& slow = made({10, 20});
  EXPECT_TRUE(table.keep(made({10, 20})));
  EXPECT_FALSE(table.keep(slow));
  EXPECT_TRUE(table.give_back(slow));
  EXPECT_EQ(table.counters().single_uses, 1u);
}

TEST_F(RegionTableTest, NeighboursAreRegisteredAgainWithWhatTouchesThem) {
  idle({10, 20});
  Region& region = *regions.emplace_back(std::make_unique<Region>(owner, true));
  ASSERT_TRUE(table.begin_with_neighbours(region, {20, 30}));
  EXPECT_EQ(region.range(), (MemoryRange{10, 30}));
  EXPECT_FALSE(table.begin_with_neighbours(region, {80, 90}));
  table.cancel(region);
}

TEST_F(RegionTableTest, UnusedPartsLieBetweenRegions) {
  idle({10, 20});
  Region& entering = made({30, 40});
  EXPECT_EQ(table.first_unused({10, 50}), (MemoryRange{20, 30}));
  EXPECT_EQ(table.first_unused({30, 40}), (MemoryRange{40, 40}));
  table.cancel(entering);
  EXPECT_EQ(table.first_unused({30, 40}), (MemoryRange{30, 40}));
}

TEST_F(RegionTableTest, AnOwnerLeavesWhenItsRegionsAreDeregistered) {
  Region& leased = made({10, 20});
  EXPECT_TRUE(table.keep(leased));
  Region& unused = idle({30, 40});
  table.retire_all(owner);
  EXPECT_FALSE(table.remove(owner));
  EXPECT_EQ(retired(), (std::vector<Region*>{&unused, &leased}));
  EXPECT_TRUE(table.remove(owner));
  EXPECT_EQ(table.counters().regions, 0u);
}

}  // namespace
}  // namespace lintel::test

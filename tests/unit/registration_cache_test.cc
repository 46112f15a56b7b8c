// The registration cache: hits, merging, eviction, refusal and leases. Without userfaultfd in the
// kernel nothing is kept, and only the tests of that case run.
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "errors_of_child.h"
#include "registration/region_table.h"
#include "registration/watched_cache.h"
#include "registration_test_support.h"

namespace lintel::test {
namespace {

class RegistrationCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = test::why_not_watched(); !reason.empty())
      GTEST_SKIP() << "nothing is kept without userfaultfd: " << reason;
  }
};

Registered pages(const Mapping& mapping, size_t first, size_t count, bool writable = true) {
  return {reinterpret_cast<uint64_t>(mapping.at(first)), count * page, writable};
}

using RegisteredList = std::vector<Registered>;

TEST_F(RegistrationCacheTest, RegistersWholePagesOnce) {
  CachedMemory cached;
  Mapping mapping(4);
  const uint32_t key = cached.use(mapping.at(1) + 100, 200);
  EXPECT_EQ(cached.registrar.live(), RegisteredList{pages(mapping, 1, 1)});
  EXPECT_EQ(cached.use(mapping.at(1), page), key);
  EXPECT_EQ(cached.use(mapping.at(2) - 1, 1), key);
  EXPECT_EQ(cached.registrar.attempts, 1u);
  const RegistrationCounters counters = cached.cache.counters();
  EXPECT_EQ(counters.hits, 2u);
  EXPECT_EQ(counters.misses, 1u);
  EXPECT_EQ(counters.regions, 1u);
  EXPECT_EQ(counters.bytes, page);
}

TEST_F(RegistrationCacheTest, NeighboursAreMerged) {
  CachedMemory cached;
  Mapping mapping(8);
  cached.use(mapping.at(1), page);
  cached.use(mapping.at(3), page);
  EXPECT_EQ(cached.registrar.live().size(), 2u);
  cached.use(mapping.at(2), page);
  EXPECT_EQ(cached.registrar.live(), RegisteredList{pages(mapping, 1, 3)});
  const uint32_t key = cached.use(mapping.at(1), 3 * page);
  EXPECT_EQ(cached.use(mapping.at(3), page), key);
}

TEST_F(RegistrationCacheTest, LongNeighboursAreNotRegisteredAgain) {
  CachedMemory cached;
  Mapping mapping(40);
  cached.use(mapping.at(0), 30 * page);
  cached.use(mapping.at(30), page);
  EXPECT_EQ(cached.registrar.live().size(), 2u);
  // A range that overlaps both is registered as a whole, in addition to the long region.
  cached.use(mapping.at(29), 2 * page);
  EXPECT_EQ(cached.registrar.live(),
            (RegisteredList{pages(mapping, 0, 30), pages(mapping, 29, 2)}));
}

TEST_F(RegistrationCacheTest, AWritableRegionServesReads) {
  CachedMemory cached;
  Mapping mapping(4);
  const uint32_t reading = cached.use(mapping.at(0), page, false);
  const uint32_t writing = cached.use(mapping.at(0), page, true);
  EXPECT_NE(reading, writing);
  EXPECT_EQ(cached.use(mapping.at(0), page, false), writing);
  EXPECT_EQ(cached.registrar.live(), RegisteredList{pages(mapping, 0, 1)});
}

TEST_F(RegistrationCacheTest, ReadOnlyMemoryIsRegisteredForReading) {
  CachedMemory cached;
  Mapping mapping(4);
  ASSERT_EQ(mprotect(mapping.at(1), page, PROT_READ), 0);
  EXPECT_NE(cached.use(mapping.at(1), page, false), 0u);
  EXPECT_EQ(cached.acquire(mapping.at(1), page, true), nullptr);
  EXPECT_EQ(cached.error, EFAULT);
}

TEST_F(RegistrationCacheTest, MemoryThatIsNotThereFails) {
  CachedMemory cached;
  Mapping mapping(8);
  mapping.forbid(3, 1);
  EXPECT_EQ(cached.acquire(mapping.at(0), 8 * page), nullptr);
  EXPECT_EQ(cached.error, EFAULT);
  EXPECT_EQ(cached.acquire(mapping.at(7), 2 * page), nullptr);  // followed by PROT_NONE
  EXPECT_EQ(cached.error, EFAULT);
  EXPECT_EQ(cached.acquire(mapping.at(0), UINT64_MAX - 100), nullptr);
  EXPECT_EQ(cached.error, EFAULT);
  EXPECT_EQ(cached.acquire(mapping.at(0), 0), nullptr);
  EXPECT_EQ(cached.error, EINVAL);
  EXPECT_NE(cached.use(mapping.at(0), 3 * page), 0u);
  EXPECT_NE(cached.use(mapping.at(4), 4 * page), 0u);
  EXPECT_EQ(cached.registrar.deregistered, 0u);
  EXPECT_EQ(cached.cache.counters().failures, 2u);
}

// If a neighbour can no longer be registered, the requested range is registered alone.
TEST_F(RegistrationCacheTest, MergingThatFailsIsDoneWithout) {
  CachedMemory cached;
  Mapping mapping(4);
  cached.use(mapping.at(0), page);
  ASSERT_EQ(mprotect(mapping.at(0), page, PROT_NONE), 0);
  EXPECT_NE(cached.use(mapping.at(1), page), 0u);
  EXPECT_EQ(cached.registrar.live(), (RegisteredList{pages(mapping, 0, 1), pages(mapping, 1, 1)}));
}

TEST_F(RegistrationCacheTest, TheLeastRecentlyUsedIsEvicted) {
  CachedMemory cached({.most_regions = 3});
  Mapping mapping(16);
  const uint32_t first = cached.use(mapping.at(0), page);
  const uint32_t second = cached.use(mapping.at(2), page);
  const uint32_t third = cached.use(mapping.at(4), page);
  cached.use(mapping.at(0), page);
  const uint32_t fourth = cached.use(mapping.at(6), page);
  EXPECT_TRUE(cached.registrar.is_live(first));
  EXPECT_FALSE(cached.registrar.is_live(second));
  EXPECT_TRUE(cached.registrar.is_live(third));
  EXPECT_TRUE(cached.registrar.is_live(fourth));
  EXPECT_EQ(cached.cache.counters().evictions, 1u);
  EXPECT_EQ(cached.cache.counters().regions, 3u);
}

TEST_F(RegistrationCacheTest, BytesAreBounded) {
  CachedMemory cached({.most_bytes = 8 * page});
  Mapping mapping(32);
  cached.use(mapping.at(0), 4 * page);
  cached.use(mapping.at(8), 4 * page);
  cached.use(mapping.at(16), 2 * page);
  EXPECT_EQ(cached.cache.counters().bytes, 6 * page);
  EXPECT_EQ(cached.cache.counters().evictions, 1u);
  // Longer than the limit of the cache: registered for a single use.
  const RegisteredRegion* const all = cached.acquire(mapping.at(0), 32 * page);
  ASSERT_NE(all, nullptr);
  EXPECT_LE(cached.cache.counters().bytes, 8 * page);
  cached.memory->release(all);
  EXPECT_EQ(cached.cache.counters().single_uses, 1u);
  for (const Registered& registered : cached.registrar.live())
    EXPECT_LT(registered.length, 32 * page);
}

TEST_F(RegistrationCacheTest, LeasedRegionsAreNotEvicted) {
  CachedMemory cached({.most_regions = 2});
  Mapping mapping(16);
  const RegisteredRegion* const first = cached.acquire(mapping.at(0), page);
  const RegisteredRegion* const second = cached.acquire(mapping.at(2), page);
  const RegisteredRegion* const third = cached.acquire(mapping.at(4), page);
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(cached.cache.counters().regions, 2u);
  EXPECT_EQ(cached.registrar.live().size(), 3u);
  cached.memory->release(third);
  EXPECT_EQ(cached.registrar.live(), (RegisteredList{pages(mapping, 0, 1), pages(mapping, 2, 1)}));
  cached.memory->release(second);
  cached.memory->release(first);
  EXPECT_EQ(cached.registrar.live().size(), 2u);
}

TEST_F(RegistrationCacheTest, AMergedRegionStaysWhileItIsLeased) {
  CachedMemory cached;
  Mapping mapping(4);
  const RegisteredRegion* const small = cached.acquire(mapping.at(0), page);
  const RegisteredRegion* const again = cached.acquire(mapping.at(0), 10);
  EXPECT_EQ(small, again);
  const uint32_t key = small->registration.lkey;
  const uint32_t merged = cached.use(mapping.at(1), page);
  EXPECT_EQ(cached.use(mapping.at(0), page), merged);
  EXPECT_TRUE(cached.registrar.is_live(key));
  cached.memory->release(small);
  EXPECT_TRUE(cached.registrar.is_live(key));
  cached.memory->release(again);
  EXPECT_FALSE(cached.registrar.is_live(key));
}

TEST_F(RegistrationCacheTest, WithoutLockedMemoryUnusedRegionsGiveWay) {
  CachedMemory cached;
  Mapping mapping(64);
  cached.registrar.limit(16 * page);
  for (size_t i = 0; i < 8; ++i) cached.use(mapping.at(i * 8), 2 * page);
  EXPECT_EQ(cached.registrar.live().size(), 8u);
  EXPECT_NE(cached.use(mapping.at(2), 6 * page), 0u);
  EXPECT_NE(cached.use(mapping.at(0), 16 * page), 0u);
  EXPECT_EQ(cached.cache.counters().regions, 1u);
}

TEST_F(RegistrationCacheTest, TheLimitOfLockedMemoryIsNamed) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 65536);
  const auto run_out = [&] {
    CachedMemory cached;
    Mapping mapping(8);
    cached.registrar.limit(4 * page);
    cached.use(mapping.at(0), page);
    EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    EXPECT_EQ(cached.acquire(mapping.at(0), 8 * page), nullptr);
    EXPECT_EQ(cached.error, ENOMEM);
    // Emptying the cache was not enough; the cache remains usable.
    EXPECT_EQ(cached.cache.counters().regions, 0u);
    EXPECT_NE(cached.use(mapping.at(0), page), 0u);
  };
  using testing::HasSubstr;
  expect_errors_of_new_process(
      "warn", run_out,
      testing::AllOf(
          HasSubstr("RLIMIT_MEMLOCK) is " + std::to_string(limit.rlim_cur / 1024) + " KiB"),
          HasSubstr("ulimit -l unlimited"), HasSubstr("limits.d"), HasSubstr("LimitMEMLOCK")));
}

TEST_F(RegistrationCacheTest, OtherFailuresAreHandedOn) {
  CachedMemory cached;
  Mapping mapping(2);
  cached.registrar.fail_next(EIO);
  EXPECT_EQ(cached.acquire(mapping.at(0), page), nullptr);
  EXPECT_EQ(cached.error, EIO);
  EXPECT_NE(cached.use(mapping.at(0), page), 0u);
}

TEST_F(RegistrationCacheTest, RegistrarsAreKeptApart) {
  CachedMemory cached;
  test::FakeRegistrar other;
  auto others = cached.cache.attach(other);
  Mapping mapping(2);
  cached.use(mapping.at(0), page);
  int error = 0;
  const RegisteredRegion* const region = others->acquire(mapping.at(0), page, true, error);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(other.live().size(), 1u);
  others->release(region);
  others.reset();
  EXPECT_EQ(other.live().size(), 0u);
  EXPECT_EQ(cached.registrar.live().size(), 1u);
  // The mapping is still watched after the regions of the other registrar have been removed.
  mapping.map(0, 1);
  cached.use(mapping.at(0), page);
  EXPECT_EQ(cached.cache.counters().invalidations, 1u);
}

TEST_F(RegistrationCacheTest, DetachingDeregistersEverything) {
  CachedMemory cached;
  Mapping mapping(64);
  for (size_t i = 0; i < 64; i += 2) cached.use(mapping.at(i), page);
  EXPECT_TRUE(cached.cache.watching());
  cached.memory.reset();
  EXPECT_EQ(cached.registrar.live().size(), 0u);
  EXPECT_FALSE(cached.cache.watching());
  EXPECT_EQ(cached.cache.counters().regions, 0u);
  // The cache can be used again.
  cached.memory = cached.cache.attach(cached.registrar);
  EXPECT_NE(cached.use(mapping.at(0), page), 0u);
  EXPECT_TRUE(cached.cache.watching());
}

// A simple reference implementation of the index: the result that a look-up must have.
TEST(RegionIndexTest, FindsWhatSomeRegionContains) {
  RegionIndex index;
  index.open(64);
  std::vector<std::unique_ptr<Region>> regions;
  test::FakeRegistrar registrar;
  RegionOwner owner(registrar, 0);
  uint64_t dice = 12345;
  const auto next = [&](uint64_t limit) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (dice >> 33) % limit;
  };
  const auto contains = [](const Region& outer, uint64_t begin, uint64_t end) {
    return outer.begin() <= begin && end <= outer.end();
  };
  for (unsigned round = 0; round < 20000; ++round) {
    const uint64_t begin = next(200);
    const uint64_t end = begin + 1 + next(20);
    const auto within = [&](const auto& region) { return contains(*region, begin, end); };
    const bool found = index.find(begin, end) != nullptr;
    ASSERT_EQ(found, std::any_of(regions.begin(), regions.end(), within));
    const auto drop = [&](const auto& wanted) {
      std::erase_if(regions, [&](const auto& region) { return wanted(*region); });
    };
    switch (next(4)) {
      case 0:
      case 1:
        if (found || index.full()) break;
        index.take_within(begin, end, [](Region&) {});
        drop([&](const Region& region) { return begin <= region.begin() && region.end() <= end; });
        regions.push_back(std::make_unique<Region>(owner, true));
        regions.back()->cover({begin, end});
        index.insert(*regions.back());
        break;
      case 2: {
        size_t taken = 0;
        const size_t before = regions.size();
        if (next(8) != 0) break;
        index.take_overlapping(begin, end, [&](Region&) { ++taken; });
        drop([&](const Region& region) { return region.overlaps(begin, end); });
        ASSERT_EQ(taken, before - regions.size());
        break;
      }
      default:
        if (regions.empty()) break;
        const size_t victim = next(regions.size());
        index.remove(*regions[victim]);
        regions.erase(regions.begin() + static_cast<ptrdiff_t>(victim));
    }
    ASSERT_EQ(index.size(), regions.size());
    uint64_t covered = begin;
    for (bool further = true; further;) {
      further = false;
      for (const auto& region : regions) {
        if (region->begin() > covered || region->end() <= covered) continue;
        covered = region->end();
        further = true;
      }
    }
    ASSERT_EQ(index.covered_until(begin), covered);
  }
}

// Applies with and without userfaultfd.
TEST(RegistrationWithoutCacheTest, RegistersForOneOperation) {
  CachedMemory cached({.most_regions = 0});
  EXPECT_FALSE(cached.cache.watching());
  Mapping mapping(4);
  const RegisteredRegion* const first = cached.acquire(mapping.at(0) + 5, 10);
  const RegisteredRegion* const second = cached.acquire(mapping.at(0), page);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(first->registration.lkey, second->registration.lkey);
  EXPECT_EQ(first->length, page);
  cached.memory->release(first);
  EXPECT_EQ(cached.registrar.live().size(), 1u);
  cached.memory->release(second);
  EXPECT_EQ(cached.registrar.live().size(), 0u);
  EXPECT_EQ(cached.cache.counters().single_uses, 2u);
}

TEST(RegistrationWithoutCacheTest, RegionsOfLostOperationsAreDeregisteredInTheEnd) {
  CachedMemory cached;
  Mapping mapping(4);
  EXPECT_NE(cached.acquire(mapping.at(0), page), nullptr);
  EXPECT_NE(cached.acquire(&::environ, sizeof ::environ, false), nullptr);
  cached.memory.reset();
  EXPECT_EQ(cached.registrar.live().size(), 0u);
}

TEST(RegistrationWithoutCacheTest, OneCachePerProcess) {
  EXPECT_EQ(&process_registration_cache(), &process_registration_cache());
  test::FakeRegistrar registrar;
  const auto memory = process_registration_cache().attach(registrar);
  Mapping mapping(1);
  int error = 0;
  const RegisteredRegion* const region = memory->acquire(mapping.at(0), page, true, error);
  ASSERT_NE(region, nullptr);
  memory->release(region);
}

// The states of regions in the registration cache, without a device or the kernel.

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

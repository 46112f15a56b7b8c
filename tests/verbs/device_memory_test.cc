// Memory that the device may access: regions of the cache, registrations for a single use.
#include "verbs/device_memory.h"

#include <sys/mman.h>

#include "verbs_test_support.h"

namespace lintel {
namespace {

class DeviceMemoryTest : public test::VerbsDeviceTest {
 protected:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(8192);
  const Piece piece_{bytes_.data(), bytes_.size()};
};

TEST_F(DeviceMemoryTest, WithoutACacheItIsNotOpen) {
  DeviceMemory memory(*device_);
  memory.open(nullptr);
  EXPECT_FALSE(memory.is_open());
}

TEST_F(DeviceMemoryTest, RegionsContainWhatWasAskedFor) {
  WatchedCache cache{WatchedCache::Settings{}};
  DeviceMemory memory(*device_);
  memory.open(&cache);
  ASSERT_TRUE(memory.is_open());
  for (const bool writable : {false, true}) {
    const RegisteredRegion* const region = memory.acquire(piece_, writable);
    ASSERT_NE(region, nullptr);
    EXPECT_LE(region->address, reinterpret_cast<uint64_t>(bytes_.data()));
    EXPECT_GE(region->address + region->length,
              reinterpret_cast<uint64_t>(bytes_.data()) + bytes_.size());
    memory.release(region);
  }
}

TEST_F(DeviceMemoryTest, MemoryThatIsNotMappedIsNotRegistered) {
  DeviceMemory memory(*device_);
  void* const nothing = mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(nothing, MAP_FAILED);
  EXPECT_EQ(memory.register_once({static_cast<std::byte*>(nothing), 8192}, false), nullptr);
  munmap(nothing, 8192);
}

TEST_F(DeviceMemoryTest, AtTheLimitOfLockedMemoryPagesAreFetchedOnDemandWhereTheDeviceCan) {
  for (const bool on_demand : {false, true}) {
    open({.on_demand = on_demand});
    DeviceMemory memory(*device_);
    fake_verbs::limit_locked_bytes(fake_verbs::locked_bytes());
    ibv_mr* const region = memory.register_once(piece_, true);
    EXPECT_EQ(region != nullptr, on_demand);
    EXPECT_EQ(memory.on_demand_count(), on_demand ? 1u : 0u);
    if (region != nullptr) ibv_dereg_mr(region);
  }
}

TEST_F(DeviceMemoryTest, WindowsOfTheSoftwareDeviceAreNotUsed) {
  EXPECT_TRUE(DeviceMemory(*device_).has_windows());
  open({.windows = false});
  EXPECT_FALSE(DeviceMemory(*device_).has_windows());
  open({.vendor = vendor_of_rxe});
  EXPECT_FALSE(DeviceMemory(*device_).has_windows());
}

}  // namespace
}  // namespace lintel

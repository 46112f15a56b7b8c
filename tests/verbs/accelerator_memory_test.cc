// Memory of accelerators that RDMA devices access: registered by its dmabuf or by its address, kept
// registered, and deregistered when it has been freed.
#include <fcntl.h>
#include <sys/mman.h>

#include "registration/accelerator_regions.h"
#include "unit/test_memory_kind.h"
#include "verbs/device_memory.h"
#include "verbs_test_support.h"

namespace lintel {
namespace {

using test::run_until;
using test::TestMemoryKind;
using test::VerbsProcess;

class AcceleratorMemoryTest : public test::VerbsDeviceTest {
 protected:
  static constexpr size_t bytes = 1 << 20;

  static void TearDownTestSuite() { TestMemoryKind::leave(); }
  void SetUp() override {
    open_device({.dmabuf = true});
    kind_.reset();
    kind_.lends = true;
    allocation_ = kind_.allocate(bytes);
  }
  void TearDown() override {
    memory_.reset();
    if (allocation_ != nullptr) kind_.free(allocation_);
    VerbsDeviceTest::TearDown();
  }
  void open_device(const fake_verbs::Settings& settings) {
    memory_.reset();
    open(settings);
    memory_ = std::make_unique<DeviceMemory>(*device_);
    memory_->open(&cache_);
  }
  void free_memory() {
    kind_.free(allocation_);
    allocation_ = nullptr;
  }
  [[nodiscard]] Piece piece() const { return {allocation_ + 5000, 10'000}; }
  static unsigned dmabufs() { return fake_verbs::calls("ibv_reg_dmabuf_mr"); }
  static unsigned by_address() { return fake_verbs::calls("ibv_reg_mr"); }

  TestMemoryKind& kind_ = TestMemoryKind::in_use();
  WatchedCache cache_{WatchedCache::Settings{}};
  std::unique_ptr<DeviceMemory> memory_;
  std::byte* allocation_ = nullptr;
};

TEST_F(AcceleratorMemoryTest, AnAllocationIsRegisteredOnceAndItsDescriptorClosed) {
  for (const bool writable : {true, false}) {
    const RegisteredRegion* const region = memory_->acquire(piece(), writable);
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(region->address, reinterpret_cast<uint64_t>(allocation_));
    EXPECT_EQ(region->length, bytes);
    memory_->release(region);
  }
  EXPECT_EQ(dmabufs(), 1u);
  EXPECT_EQ(by_address(), 0u);
  EXPECT_EQ(memory_->accelerator_count(), 1u);
  EXPECT_EQ(fake_verbs::in_use().regions, 1u);
  ASSERT_NE(fake_verbs::last_dmabuf(), -1);
  EXPECT_EQ(fcntl(fake_verbs::last_dmabuf(), F_GETFD), -1);
}

TEST_F(AcceleratorMemoryTest, WhatReachesBeyondItsAllocationIsNotRegistered) {
  EXPECT_EQ(memory_->acquire({allocation_ + bytes - 10, 11}, true), nullptr);
  EXPECT_EQ(memory_->register_once({allocation_ + bytes - 10, 11}, true), nullptr);
  EXPECT_EQ(dmabufs(), 0u);
}

TEST_F(AcceleratorMemoryTest, FreedMemoryIsDeregistered) {
  memory_->release(memory_->acquire(piece(), true));
  EXPECT_TRUE(memory_->end_freed());
  free_memory();
  EXPECT_TRUE(run_until({}, [&] { return !memory_->end_freed(); }));
  EXPECT_EQ(fake_verbs::in_use().regions, 0u);
}

TEST_F(AcceleratorMemoryTest, FreedMemoryIsDeregisteredAfterItsLastUse) {
  const RegisteredRegion* const region = memory_->acquire(piece(), true);
  ASSERT_NE(region, nullptr);
  free_memory();
  EXPECT_FALSE(memory_->end_freed());
  EXPECT_EQ(fake_verbs::in_use().regions, 1u);
  memory_->release(region);
  EXPECT_EQ(fake_verbs::in_use().regions, 0u);
}

TEST_F(AcceleratorMemoryTest, OtherMemoryAtTheSameAddressIsRegisteredAnew) {
  std::byte* const before = allocation_;
  memory_->release(memory_->acquire(piece(), true));
  free_memory();
  allocation_ = kind_.allocate(bytes, before);
  ASSERT_EQ(allocation_, before);
  memory_->release(memory_->acquire(piece(), true));
  EXPECT_EQ(dmabufs(), 2u);
  EXPECT_EQ(fake_verbs::in_use().regions, 1u);
}

class FreeRegistrar final : public Registrar {
 public:
  int register_memory(void*, uint64_t, bool, Registration&) noexcept override { return EFAULT; }
  int register_accelerator(const AcceleratorRange&, Registration&) noexcept override { return 0; }
  void deregister_memory(Registration&) noexcept override {}
};

// A thread may have asked for the allocation before another one freed it.
TEST_F(AcceleratorMemoryTest, AFormerAllocationAtTheSameAddressIsRefused) {
  FreeRegistrar registrar;
  AcceleratorRegions regions(registrar, 10);
  std::byte* const before = allocation_;
  DeviceAllocation former, present;
  ASSERT_TRUE(kind_.describe(before, &former));
  free_memory();
  allocation_ = kind_.allocate(bytes, before);
  ASSERT_EQ(allocation_, before);
  ASSERT_TRUE(kind_.describe(before, &present));
  const MemoryRange range{present.base, present.base + 8};
  int error = 0;
  const RegisteredRegion* const region = regions.acquire(kind_, present, range, error);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(regions.acquire(kind_, former, range, error), nullptr);
  EXPECT_EQ(error, EFAULT);
  EXPECT_EQ(regions.acquire(kind_, present, range, error), region);
  regions.release(*region);
  regions.release(*region);
}

// As with the software device, and no driver for peer memory.
TEST_F(AcceleratorMemoryTest, ARefusedAllocationIsTriedOnce) {
  open_device({.dmabuf = false, .peer_memory = false});
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_EQ(memory_->acquire(piece(), true), nullptr);
    EXPECT_EQ(memory_->acquire_for_window(piece()), nullptr);
    EXPECT_EQ(memory_->register_once(piece(), true), nullptr);
  }
  EXPECT_EQ(dmabufs(), 1u);
  EXPECT_EQ(by_address(), 1u);
}

TEST_F(AcceleratorMemoryTest, AShortageIsTriedAgain) {
  fake_verbs::fail_call("ibv_reg_dmabuf_mr", ENOMEM);
  fake_verbs::fail_call("ibv_reg_mr", ENOMEM);
  EXPECT_EQ(memory_->acquire(piece(), true), nullptr);
  const RegisteredRegion* const region = memory_->acquire(piece(), true);
  ASSERT_NE(region, nullptr);
  memory_->release(region);
}

TEST_F(AcceleratorMemoryTest, WithoutADmabufItIsRegisteredByItsAddress) {
  kind_.lends = false;
  const RegisteredRegion* const region = memory_->acquire(piece(), true);
  ASSERT_NE(region, nullptr);
  memory_->release(region);
  EXPECT_EQ(dmabufs(), 0u);
  EXPECT_EQ(by_address(), 1u);
}

TEST_F(AcceleratorMemoryTest, PeersGetKeysOfTheirBytesOnly) {
  EXPECT_EQ(memory_->acquire_for_window(piece()), nullptr);
  for (const bool write : {false, true}) {
    ibv_mr* const region = memory_->register_once(piece(), write);
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(region->addr, piece().base);
    EXPECT_EQ(region->length, piece().length);
    EXPECT_EQ(fcntl(fake_verbs::last_dmabuf(), F_GETFD), -1);
    ibv_dereg_mr(region);
  }
}

TEST_F(AcceleratorMemoryTest, NothingIsKeptIfTheCacheKeepsNothing) {
  memory_.reset();
  WatchedCache none{WatchedCache::Settings{.most_regions = 0}};
  memory_ = std::make_unique<DeviceMemory>(*device_);
  memory_->open(&none);
  memory_->release(memory_->acquire(piece(), true));
  EXPECT_EQ(fake_verbs::in_use().regions, 0u);
  memory_.reset();
}

// Both sides of an access are memory of accelerators.
class AcceleratorAccessTest : public test::VerbsTest {
 protected:
  static void TearDownTestSuite() { TestMemoryKind::leave(); }
};

TEST_F(AcceleratorAccessTest, ReadsAndWritesBetweenAccelerators) {
  start({.dmabuf = true});
  constexpr size_t bytes = 1 << 20;
  TestMemoryKind& kind = TestMemoryKind::in_use();
  kind.reset();
  kind.lends = true;
  std::byte* const theirs = kind.allocate(bytes);
  std::byte* const ours = kind.allocate(bytes);
  {
    VerbsProcess owner, accessor;
    test::Stream stream(owner, accessor);
    ASSERT_TRUE(stream.pass(300));
    for (const bool write : {false, true}) {
      const auto pattern = test::bytes_of(write ? 5 : 6, bytes);
      std::memcpy(kind.inside(write ? ours : theirs), pattern.data(), bytes);
      const Piece exposed{theirs + 100, bytes - 100};
      const Piece local{ours + 100, bytes - 100};
      RemoteMemory told{};
      Exposure exposure{};
      ASSERT_TRUE(run_until({&owner, &accessor}, [&] {
        exposure = test::tell_of(owner, accessor, stream.link(), &exposed, 1, write, &told);
        return exposure.status == SendStatus::sent;
      }));
      ASSERT_EQ(exposure.count, 1u);
      EXPECT_EQ(fake_verbs::done(IBV_WR_BIND_MW), 0u);
      accessor.ended.clear();
      ASSERT_EQ(
          accessor.transport->remote_access(*accessor.last_link, write, &local, 1, &told, 1, 1)
              .status,
          RemoteStatus::started);
      ASSERT_TRUE(run_until({&owner, &accessor}, [&] { return !accessor.ended.empty(); }));
      EXPECT_EQ(accessor.ended[0].result.status, RemoteStatus::done);
      EXPECT_EQ(std::memcmp(kind.inside(write ? theirs : ours) + 100, &pattern[100], bytes - 100),
                0);
      owner.transport->withdraw(stream.link(), exposure.number, false);
    }
    ASSERT_TRUE(stream.pass(100));
    // A process that waits looks from time to time whether the memory was freed.
    const unsigned before = fake_verbs::in_use().regions;
    kind.free(ours);
    const int64_t limit_ns = accessor.transport->sleep_limit_ns();
    EXPECT_TRUE(run_until({}, [&] {
      static_cast<void>(accessor.transport->sleep_limit_ns());
      return fake_verbs::in_use().regions == before - 1;
    }));
    EXPECT_LE(limit_ns, 250'000'000);
  }
  kind.free(theirs);
}

// Memory that the device may access: regions of the cache, registrations for a single use.

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

// Memory of accelerators, over the stand-ins for their drivers. Each test runs in a process of its
// own, since drivers stay in use.
#include "memory_kind/memory_kind.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "memory_kind/cuda_functions.h"
#include "memory_kind/drivers.h"
#include "support/accelerator.h"
#include "support/ranks.h"
#include "util/config.h"
#include "util/log.h"

namespace lintel {

namespace {

using test::Accelerator;
using test::DeviceBuffer;
using test::Rank;
using Environment = std::vector<std::pair<std::string, std::string>>;

void in_process(const Environment& environment, const std::function<void()>& body) {
  test::RunOptions options;
  options.environment = environment;
  test::run_ranks(1, options, [&](Rank&) {
    config_reload();
    body();
  });
}

class MemoryKindTest : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::string driver() const { return GetParam(); }
  Accelerator& load() const {
    Accelerator& accelerator = Accelerator::load(driver());
    look_for_drivers();
    return accelerator;
  }
  void run(const std::function<void()>& body, const Environment& environment = {}) const {
    in_process(environment, body);
  }
  void run_loaded(const std::function<void(Accelerator&)>& body,
                  const Environment& environment = {}) const {
    in_process(environment, [&] { body(load()); });
  }
};

DeviceAllocation described(const void* address) {
  DeviceAllocation allocation;
  EXPECT_NE(kind_of(address, &allocation), nullptr);
  return allocation;
}

MemoryKind& kind_at(const void* address) {
  DeviceAllocation allocation;
  MemoryKind* const kind = kind_of(address, &allocation);
  if (kind == nullptr) throw std::runtime_error("not memory of a device");
  return *kind;
}

CopyStatus awaited(MemoryKind& kind, CopyTicket ticket) {
  CopyStatus status = CopyStatus::running;
  while (status == CopyStatus::running) {
    std::this_thread::yield();
    status = kind.state_of(ticket);
  }
  return status;
}

TEST_P(MemoryKindTest, HasNoKindBeforeADriverIsLoaded) {
  run([] {
    look_for_drivers();
    EXPECT_FALSE(device_memory_in_use());
    int here = 0;
    DeviceAllocation allocation;
    EXPECT_EQ(kind_of(&here, &allocation), nullptr);
  });
}

TEST_P(MemoryKindTest, TakesALoadedDriverIntoUse) {
  run([&] {
    look_for_drivers();
    Accelerator::load_library(driver());
    look_for_drivers();
    EXPECT_TRUE(device_memory_in_use());
    // The driver is not initialized.
    int here = 0;
    DeviceAllocation allocation;
    EXPECT_EQ(kind_of(&here, &allocation), nullptr);
  });
}

TEST_P(MemoryKindTest, LeavesDriversAloneIfOff) {
  run(
      [&] {
        load();
        EXPECT_FALSE(device_memory_in_use());
        EXPECT_EQ(driver_reports().front().text, "PTL_DEVICE_MEMORY=off");
      },
      {{"PTL_DEVICE_MEMORY", "off"}});
}

TEST_P(MemoryKindTest, DescribesAllocations) {
  run_loaded([&](Accelerator& accelerator) {
    const DeviceBuffer buffer(accelerator, 10000);
    const DeviceAllocation allocation = described(buffer.data() + 9999);
    EXPECT_EQ(allocation.base, reinterpret_cast<uintptr_t>(buffer.data()));
    EXPECT_GE(allocation.length, 10000u);
    EXPECT_EQ(allocation.device, 0);
    EXPECT_STREQ(kind_at(buffer.data()).name(), GetParam());
    char pci[32] = "";
    kind_at(buffer.data()).pci_address(0, pci, sizeof pci);
    if (Accelerator::is_fake()) {
      EXPECT_STRCASEEQ(pci, "0000:3b:00.0");
    }
    DeviceAllocation none;
    EXPECT_EQ(kind_of(&none, &none), nullptr);
  });
}

TEST_P(MemoryKindTest, TellsAllocationsAtTheSameAddressApart) {
  run_loaded([&](Accelerator& accelerator) {
    DeviceBuffer first(accelerator, 4096);
    const DeviceAllocation before = described(first.data());
    first.release();
    DeviceAllocation none;
    EXPECT_EQ(kind_of(reinterpret_cast<void*>(before.base), &none), nullptr);
    const DeviceBuffer second(accelerator, 4096);
    const DeviceAllocation after = described(second.data());
    EXPECT_EQ(after.base, before.base);
    EXPECT_NE(after.id, before.id);
  });
}

TEST_P(MemoryKindTest, TakesManagedMemoryForMemoryOfTheHost) {
  run_loaded([&](Accelerator& accelerator) {
    auto* const managed = static_cast<char*>(accelerator.allocate_managed(4096));
    DeviceAllocation none;
    EXPECT_EQ(kind_of(managed, &none), nullptr);
    managed[0] = 1;
  });
}

TEST_P(MemoryKindTest, FaultsIfTheProcessorTouchesIt) {
  run_loaded([&](Accelerator& accelerator) {
    const DeviceBuffer buffer(accelerator, 4096);
    const int status = test::run_child(
        [&] { *reinterpret_cast<volatile std::byte*>(buffer.data()) = std::byte{1}; });
    EXPECT_NE(status, 0);
  });
}

TEST_P(MemoryKindTest, CopiesAndWaits) {
  run_loaded([&](Accelerator& accelerator) {
    DeviceBuffer one(accelerator, 8192);
    DeviceBuffer two(accelerator, 8192);
    one.fill(1);
    two.fill(2);
    MemoryKind& kind = kind_at(one.data());
    std::vector<uint8_t> host(100, 7);
    EXPECT_EQ(kind.copy(one.data() + 5, host.data(), 100), CopyStatus::done);
    EXPECT_EQ(kind.copy(two.data() + 50, one.data() + 4, 102), CopyStatus::done);
    std::vector<uint8_t> result(104);
    EXPECT_EQ(kind.copy(result.data(), two.data() + 49, 104), CopyStatus::done);
    std::vector<uint8_t> expected(104, 7);
    expected[0] = expected[103] = 2;
    expected[1] = expected[102] = 1;
    EXPECT_EQ(result, expected);
    EXPECT_EQ(kind.copy(one.data(), host.data(), 0), CopyStatus::done);
  });
}

TEST_P(MemoryKindTest, AsksNothingAboutMemoryThatIsDescribed) {
  run_loaded([&](Accelerator& accelerator) {
    const DeviceBuffer buffer(accelerator, 4096);
    MemoryKind& kind = kind_at(buffer.data());
    uint64_t host = 0;
    const auto questions = [&](void* to, const void* from, const DeviceAllocation* known) {
      const uint64_t before = accelerator.count("questions");
      EXPECT_EQ(kind.copy(to, from, 8, known), CopyStatus::done);
      return accelerator.count("questions") - before;
    };
    const DeviceAllocation known = described(buffer.data());
    EXPECT_EQ(questions(buffer.data(), &host, &known), 0u);
    EXPECT_EQ(questions(&host, buffer.data(), &known), 0u);
    EXPECT_NE(questions(&host, buffer.data(), nullptr), 0u);
  });
}

TEST_P(MemoryKindTest, RefusesWhatLiesOutsideOfAllocations) {
  run_loaded([&](Accelerator& accelerator) {
    DeviceBuffer buffer(accelerator, 8192);
    MemoryKind& kind = kind_at(buffer.data());
    std::vector<uint8_t> host(8192);
    EXPECT_EQ(kind.copy(buffer.data() + 1, host.data(), 8192), CopyStatus::no_memory);
    CopyStatus status = CopyStatus::done;
    EXPECT_EQ(kind.start_copy(buffer.data() + 1, host.data(), 8192, &status), no_copy);
    EXPECT_EQ(status, CopyStatus::no_memory);
    std::byte* const gone = buffer.data();
    buffer.release();
    EXPECT_EQ(kind.copy(gone, host.data(), 8), CopyStatus::no_memory);
    EXPECT_EQ(kind.start_copy(host.data(), gone, 8, &status), no_copy);
    EXPECT_EQ(status, CopyStatus::no_memory);
  });
}

TEST_P(MemoryKindTest, CopiesWithoutWaiting) {
  run_loaded(
      [&](Accelerator& accelerator) {
        constexpr size_t pieces = 64;
        constexpr size_t piece = 512;
        DeviceBuffer from(accelerator, pieces * piece);
        DeviceBuffer to(accelerator, pieces * piece);
        std::vector<uint8_t> source(from.size());
        for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i * 37 >> 3);
        from.write(source.data(), source.size());
        MemoryKind& kind = kind_at(from.data());
        std::vector<uint8_t> host(from.size());
        const bool is_pinned = kind.pin(host.data(), host.size());
        EXPECT_EQ(is_pinned, driver() != "ze");  // which pins by itself
        std::vector<CopyTicket> tickets;
        CopyStatus status = CopyStatus::done;
        for (size_t i = 0; i < pieces; ++i) {
          tickets.push_back(
              kind.start_copy(to.data() + i * piece, from.data() + i * piece, piece, &status));
          ASSERT_NE(tickets.back(), no_copy);
          EXPECT_EQ(status, CopyStatus::running);
        }
        for (const CopyTicket ticket : tickets) EXPECT_EQ(awaited(kind, ticket), CopyStatus::done);
        const CopyTicket last = kind.start_copy(host.data(), to.data(), host.size(), &status);
        ASSERT_NE(last, no_copy);
        EXPECT_EQ(awaited(kind, last), CopyStatus::done);
        EXPECT_EQ(host, source);
        EXPECT_EQ(accelerator.count("pinned"), is_pinned ? 1u : 0u);
        kind.unpin(host.data());
        EXPECT_EQ(accelerator.count("pinned"), 0u);
      },
      {{"FAKE_DEVICE_DELAY_US", "200"}});
}

TEST_P(MemoryKindTest, SaysIfTooManyCopiesAreUnderWay) {
  run_loaded(
      [&](Accelerator& accelerator) {
        DeviceBuffer from(accelerator, 4096);
        DeviceBuffer to(accelerator, 4096);
        MemoryKind& kind = kind_at(from.data());
        std::vector<CopyTicket> tickets;
        CopyStatus status = CopyStatus::done;
        for (;;) {
          const CopyTicket ticket = kind.start_copy(to.data(), from.data(), 8, &status);
          if (ticket == no_copy) break;
          tickets.push_back(ticket);
          ASSERT_LT(tickets.size(), 10000u);
        }
        EXPECT_EQ(status, CopyStatus::running);
        EXPECT_GE(tickets.size(), 64u);
        for (const CopyTicket ticket : tickets) EXPECT_EQ(awaited(kind, ticket), CopyStatus::done);
        const CopyTicket next = kind.start_copy(to.data(), from.data(), 8, &status);
        ASSERT_NE(next, no_copy);
        EXPECT_EQ(awaited(kind, next), CopyStatus::done);
      },
      {{"FAKE_DEVICE_DELAY_US", "50"}});
}

TEST_P(MemoryKindTest, ReportsALostContext) {
  run_loaded([&](Accelerator& accelerator) {
    auto* const buffer = static_cast<std::byte*>(accelerator.allocate(4096));
    MemoryKind& kind = kind_at(buffer);
    uint64_t host = 0;
    ASSERT_EQ(kind.copy(&host, buffer, 8), CopyStatus::done);
    accelerator.set("lose_after", 1);
    EXPECT_EQ(kind.copy(&host, buffer, 8), CopyStatus::failed);
    CopyStatus status = CopyStatus::running;
    EXPECT_EQ(kind.start_copy(&host, buffer, 8, &status), no_copy);
    EXPECT_NE(status, CopyStatus::running);
    EXPECT_NE(status, CopyStatus::done);
  });
}

TEST_P(MemoryKindTest, ReportsAContextThatIsLostDuringACopy) {
  run_loaded(
      [&](Accelerator& accelerator) {
        auto* const buffer = static_cast<std::byte*>(accelerator.allocate(4096));
        auto* const other = static_cast<std::byte*>(accelerator.allocate(4096));
        MemoryKind& kind = kind_at(buffer);
        CopyStatus status = CopyStatus::done;
        const CopyTicket ticket = kind.start_copy(buffer, other, 8, &status);
        ASSERT_NE(ticket, no_copy);
        accelerator.set("lose_after", 1);
        uint64_t host = 0;
        EXPECT_EQ(kind.copy(&host, buffer, 8), CopyStatus::failed);
        EXPECT_EQ(awaited(kind, ticket), CopyStatus::failed);
      },
      {{"FAKE_DEVICE_DELAY_US", "100000"}});
}

TEST_P(MemoryKindTest, CopiesFromManyThreads) {
  run_loaded([&](Accelerator& accelerator) {
    DeviceBuffer buffer(accelerator, 8 * 4096);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        MemoryKind& kind = kind_at(buffer.data());
        std::byte* const mine = buffer.data() + t * 4096;
        for (uint64_t i = 0; i < 50; ++i) {
          const uint64_t value = t << 16 | i;
          EXPECT_EQ(kind.copy(mine, &value, 8), CopyStatus::done);
          CopyStatus status = CopyStatus::done;
          const CopyTicket ticket = kind.start_copy(mine + 1024, mine, 8, &status);
          ASSERT_NE(ticket, no_copy);
          EXPECT_EQ(awaited(kind, ticket), CopyStatus::done);
          uint64_t result = 0;
          EXPECT_EQ(kind.copy(&result, mine + 1024, 8), CopyStatus::done);
          EXPECT_EQ(result, value);
        }
      });
    for (std::thread& thread : threads) thread.join();
  });
}

// Two processes: the first exports, the second opens.
void between_processes(const std::string& driver,
                       const std::function<void(Rank&, Accelerator&)>& body,
                       const Environment& environment = {}) {
  test::RunOptions options;
  options.environment = environment;
  test::run_ranks(2, options, [&](Rank& rank) {
    config_reload();
    Accelerator& accelerator = Accelerator::load(driver);
    look_for_drivers();
    body(rank, accelerator);
  });
}

// ExportedAllocation is longer than a value of a rank.
void publish(Rank& rank, const ExportedAllocation& exported) {
  std::array<std::byte, 64> halves[2];
  std::memcpy(halves, &exported, sizeof exported);
  rank.publish(0, halves[0]);
  rank.publish(1, halves[1]);
}
void export_and_publish(Rank& rank, const DeviceBuffer& buffer) {
  ExportedAllocation exported;
  ASSERT_TRUE(kind_at(buffer.data()).export_allocation(described(buffer.data()), &exported));
  publish(rank, exported);
}

ExportedAllocation published(Rank& rank) {
  const std::array<std::byte, 64> halves[2] = {rank.published<std::array<std::byte, 64>>(0, 0),
                                               rank.published<std::array<std::byte, 64>>(0, 1)};
  ExportedAllocation exported;
  std::memcpy(&exported, halves, sizeof exported);
  return exported;
}

TEST_P(MemoryKindTest, OpensAnAllocationOfAnotherProcess) {
  between_processes(driver(), [](Rank& rank, Accelerator& accelerator) {
    DeviceBuffer buffer(accelerator, 100000);
    buffer.fill(static_cast<uint8_t>(rank.index() + 1));
    MemoryKind& kind = kind_at(buffer.data());
    if (rank.index() == 0) {
      ExportedAllocation exported;
      ASSERT_TRUE(kind.export_allocation(described(buffer.data()), &exported));
      EXPECT_EQ(exported.kind, kind.number());
      publish(rank, exported);
      EXPECT_EQ(kind.open_exported(exported), nullptr);  // its own
    }
    rank.barrier();
    if (rank.index() == 1) {
      const ExportedAllocation exported = published(rank);
      auto* const theirs = static_cast<std::byte*>(kind.open_exported(exported));
      ASSERT_NE(theirs, nullptr);
      EXPECT_EQ(kind.open_exported(exported), theirs);
      EXPECT_EQ(accelerator.count("imports"), 1u);
      EXPECT_FALSE(kind.owns(theirs));  // so no message of others reaches it
      EXPECT_EQ(kind.copy(theirs + 10, buffer.data(), 20), CopyStatus::done);
      EXPECT_EQ(kind.copy(buffer.data() + 10, theirs + 29, 2), CopyStatus::done);
      kind.close_exported(theirs);
      kind.close_exported(theirs);
      EXPECT_EQ(accelerator.count("imports"), 1u);  // kept
      EXPECT_EQ(buffer.contents()[10], 2);
      EXPECT_EQ(buffer.contents()[11], 1);
    }
    rank.barrier();
    if (rank.index() == 0) {
      EXPECT_EQ(buffer.contents()[9], 1);
      EXPECT_EQ(buffer.contents()[10], 2);
      EXPECT_EQ(buffer.contents()[30], 1);
    }
    rank.barrier();
  });
}

TEST_P(MemoryKindTest, GivesUpMappingsOfFreedAllocations) {
  between_processes(driver(), [](Rank& rank, Accelerator& accelerator) {
    DeviceBuffer own(accelerator, 4096);
    MemoryKind& kind = kind_at(own.data());
    for (int round = 0; round < 3; ++round) {
      DeviceBuffer buffer(accelerator, 4096);
      if (rank.index() == 0) {
        ExportedAllocation exported;
        ASSERT_TRUE(kind.export_allocation(described(buffer.data()), &exported));
        publish(rank, exported);
      }
      rank.barrier();
      if (rank.index() == 1) {
        void* const theirs = kind.open_exported(published(rank));
        ASSERT_NE(theirs, nullptr);
        kind.close_exported(theirs);
        EXPECT_EQ(accelerator.count("imports"), 1u);
      }
      rank.barrier();
    }
    rank.barrier();
    // The last one has been freed. What names it is refused, unless it is mapped already.
    if (rank.index() == 1) {
      ExportedAllocation freed = published(rank);
      freed.id += 1;
      EXPECT_EQ(kind.open_exported(freed), nullptr);
    }
    rank.barrier();
  });
}

TEST_P(MemoryKindTest, GivesUpMappingsThatItIsToForget) {
  between_processes(driver(), [](Rank& rank, Accelerator& accelerator) {
    DeviceBuffer buffer(accelerator, 4096);
    MemoryKind& kind = kind_at(buffer.data());
    if (rank.index() == 0) {
      export_and_publish(rank, buffer);
    }
    rank.barrier();
    if (rank.index() == 1) {
      const ExportedAllocation exported = published(rank);
      void* const theirs = kind.open_exported(exported);
      ASSERT_NE(theirs, nullptr);
      kind.forget_exported(exported.process, nullptr);
      EXPECT_EQ(accelerator.count("imports"), 1u);  // in use
      kind.close_exported(theirs);
      EXPECT_EQ(accelerator.count("imports"), 0u);
      kind.close_exported(kind.open_exported(exported));
      kind.forget_exported(exported.process + 1, nullptr);
      EXPECT_EQ(accelerator.count("imports"), 1u);
      const uint64_t other = exported.id + 1;
      kind.forget_exported(exported.process, &other);
      EXPECT_EQ(accelerator.count("imports"), 1u);
      kind.forget_exported(exported.process, &exported.id);
      EXPECT_EQ(accelerator.count("imports"), 0u);
      kind.close_exported(kind.open_exported(exported));
      kind.forget_exported(exported.process, nullptr);
      EXPECT_EQ(accelerator.count("imports"), 0u);
    }
    rank.barrier();
  });
}

TEST_P(MemoryKindTest, RefusesForgedExports) {
  between_processes(driver(), [](Rank& rank, Accelerator& accelerator) {
    DeviceBuffer buffer(accelerator, 4096);
    MemoryKind& kind = kind_at(buffer.data());
    if (rank.index() == 0) {
      export_and_publish(rank, buffer);
    }
    rank.barrier();
    if (rank.index() == 1) {
      const ExportedAllocation good = published(rank);
      ExportedAllocation forged = good;
      forged.length *= 2;
      EXPECT_EQ(kind.open_exported(forged), nullptr);
      forged = good;
      forged.length = ~uint64_t{0};
      EXPECT_EQ(kind.open_exported(forged), nullptr);
      forged = good;
      forged.length = 0;
      EXPECT_EQ(kind.open_exported(forged), nullptr);
      forged = good;
      forged.kind += 1;
      EXPECT_EQ(kind.open_exported(forged), nullptr);
      forged = good;
      forged.handle_bytes = 65;
      EXPECT_EQ(kind.open_exported(forged), nullptr);
      forged = good;
      forged.handle.fill(std::byte{0xff});
      EXPECT_EQ(kind.open_exported(forged), nullptr);
      EXPECT_EQ(accelerator.count("imports"), 0u);
    }
    rank.barrier();
  });
}

TEST_P(MemoryKindTest, HasNoMappingWithoutPeerAccess) {
  between_processes(driver(),
                    [](Rank& rank, Accelerator& accelerator) {
                      DeviceBuffer buffer(accelerator, 4096);
                      MemoryKind& kind = kind_at(buffer.data());
                      if (rank.index() == 0) {
                        ExportedAllocation exported;
                        ASSERT_TRUE(kind.export_allocation(described(buffer.data()), &exported));
                        publish(rank, exported);
                      }
                      rank.barrier();
                      if (rank.index() == 1) {
                        EXPECT_EQ(kind.open_exported(published(rank)), nullptr);
                      }
                      rank.barrier();
                    },
                    {{"FAKE_DEVICE_NO_PEER", "1"}});
}

TEST_P(MemoryKindTest, DoesNotExportWhatWasFreed) {
  run_loaded([&](Accelerator& accelerator) {
    DeviceBuffer buffer(accelerator, 4096);
    MemoryKind& kind = kind_at(buffer.data());
    const DeviceAllocation before = described(buffer.data());
    buffer.release();
    const DeviceBuffer other(accelerator, 4096);
    ExportedAllocation exported;
    EXPECT_FALSE(kind.export_allocation(before, &exported));
  });
}

TEST_P(MemoryKindTest, GivesADescriptorForADevice) {
  run_loaded([&](Accelerator& accelerator) {
    DeviceBuffer buffer(accelerator, 10000);
    MemoryKind& kind = kind_at(buffer.data());
    uint64_t offset = 0;
    const int descriptor = kind.dmabuf(buffer.data() + 5000, 1000, &offset);
    ASSERT_GE(descriptor, 0);
    EXPECT_EQ(offset, 5000u);
    const uint64_t value = 0x1234567;
    EXPECT_EQ(pwrite(descriptor, &value, 8, static_cast<off_t>(offset)), 8);
    uint64_t result = 0;
    buffer.read(&result, 8, 5000);
    EXPECT_EQ(result, value);
    close(descriptor);
    EXPECT_EQ(kind.dmabuf(buffer.data() + 5000, 20000, &offset), -1);
    EXPECT_EQ(kind.dmabuf(&offset, 8, &offset), -1);
  });
}

TEST_P(MemoryKindTest, Allocates) {
  run([&] {
    Accelerator::load_library(driver());
    look_for_drivers();
    MemoryKind* kind = nullptr;
    for (const DriverReport& report : driver_reports())
      if (report.name == driver()) kind = report.kind;
    ASSERT_NE(kind, nullptr);
    EXPECT_EQ(kind->device_count(), 1);
    char name[100];
    kind->device_name(0, name, sizeof name);
    EXPECT_STREQ(name, "Stand-in 0");
    void* const memory = kind->allocate(0, 4096);
    ASSERT_NE(memory, nullptr);
    EXPECT_GE(described(memory).length, 4096u);
    kind->release(memory);
    EXPECT_EQ(kind->allocate(1, 4096), nullptr);
    EXPECT_EQ(kind->allocate(-1, 4096), nullptr);
  });
}

INSTANTIATE_TEST_SUITE_P(Drivers, MemoryKindTest, testing::Values("cuda", "hip", "ze"),
                         [](const auto& driver) { return std::string(driver.param); });

TEST(MemoryKindRegistryTest, RefusesUnknownWords) {
  for (const char* const words : {"cud", "auto,cuda", "off,hip"})
    in_process({{"PTL_DEVICE_MEMORY", words}}, [] {
      // Looks again where look_for_drivers() does not, since the parent may have looked.
      EXPECT_EQ(find_driver("none"), nullptr);
      EXPECT_EQ(config_display(ConfigKey::device_memory), "auto");
    });
}

TEST(MemoryKindRegistryTest, LoadsDriversThatAreNamed) {
  in_process({{"PTL_DEVICE_MEMORY", "cuda"}}, [] {
    EXPECT_EQ(find_driver("none"), nullptr);
    // This machine may have one.
    for (const DriverReport& report : driver_reports()) EXPECT_FALSE(report.text.empty());
  });
}

// A program with two devices, and one with contexts of its own.
TEST(MemoryKindContextsTest, CopiesBetweenDevices) {
  in_process({{"FAKE_DEVICE_COUNT", "2"}}, [] {
    Accelerator& first = Accelerator::load("cuda", 0);
    Accelerator& second = Accelerator::load("cuda", 1);
    look_for_drivers();
    DeviceBuffer from(first, 4096);
    DeviceBuffer to(second, 4096);
    EXPECT_EQ(described(from.data()).device, 0);
    EXPECT_EQ(described(to.data()).device, 1);
    from.fill(9);
    EXPECT_EQ(kind_at(from.data()).copy(to.data(), from.data(), 4096), CopyStatus::done);
    EXPECT_EQ(to.contents(), std::vector<uint8_t>(4096, 9));
  });
}

// The memory of a context that is destroyed fails with a reason, that of others is not affected.
TEST(MemoryKindContextsTest, MemoryBelongsToItsContext) {
  in_process({}, [] {
    Accelerator& accelerator = Accelerator::load("cuda");
    look_for_drivers();
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr);
    const auto create = reinterpret_cast<cuda::Result (*)(cuda::Context*, unsigned, cuda::Device)>(
        dlsym(library, "cuCtxCreate_v2"));
    const auto destroy =
        reinterpret_cast<cuda::Result (*)(cuda::Context)>(dlsym(library, "cuCtxDestroy_v2"));
    const auto allocate =
        reinterpret_cast<decltype(cuda::Functions::allocate)>(dlsym(library, "cuMemAlloc_v2"));
    const DeviceBuffer of_primary(accelerator, 4096);
    cuda::Context own = nullptr;
    cuda::DevicePointer pointer = 0;
    ASSERT_EQ(create(&own, 0, 0), cuda::success);
    ASSERT_EQ(allocate(&pointer, 4096), cuda::success);
    auto* const of_own = reinterpret_cast<std::byte*>(pointer);
    MemoryKind& kind = kind_at(of_own);
    EXPECT_EQ(&kind, &kind_at(of_primary.data()));
    EXPECT_NE(described(of_own).context, described(of_primary.data()).context);
    uint64_t value = 11;
    EXPECT_EQ(kind.copy(of_own, &value, 8), CopyStatus::done);
    EXPECT_EQ(kind.copy(of_primary.data(), of_own, 8), CopyStatus::done);
    CopyStatus status = CopyStatus::done;
    const CopyTicket ticket = kind.start_copy(of_own + 8, of_primary.data(), 8, &status);
    ASSERT_NE(ticket, no_copy);
    EXPECT_EQ(awaited(kind, ticket), CopyStatus::done);
    EXPECT_EQ(kind.copy(&(value = 0), of_own + 8, 8), CopyStatus::done);
    EXPECT_EQ(value, 11u);

    ASSERT_EQ(destroy(own), cuda::success);
    static std::string said;
    set_log_listener([](LogLevel, const char* text) noexcept {
      said += text;
      return false;
    });
    EXPECT_EQ(kind.copy(&value, of_own, 8), CopyStatus::failed);
    set_log_listener(nullptr);
    EXPECT_NE(said.find("CUDA_ERROR_CONTEXT_IS_DESTROYED"), std::string::npos) << said;
    EXPECT_EQ(kind.start_copy(&value, of_own, 8, &status), no_copy);
    EXPECT_EQ(status, CopyStatus::failed);
    EXPECT_EQ(kind.copy(&value, of_primary.data(), 8), CopyStatus::done);
  });
}

}  // namespace

}  // namespace lintel

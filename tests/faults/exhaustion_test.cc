// Targets that receive nothing for a while, and systems without free resources. The allocations
// that fail go through a malloc of this test.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {
constexpr long unlimited = -1;
thread_local long allocations_left = unlimited;  // then one fails, and those after it do not
thread_local bool one_has_failed = false;

bool allocation_fails() noexcept {
  if (allocations_left == unlimited || allocations_left-- != 0) return false;
  one_has_failed = true;
  errno = ENOMEM;
  return true;
}
}  // namespace

extern "C" {
void* __libc_malloc(size_t bytes);            // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t n);  // NOLINT(bugprone-reserved-identifier)

void* malloc(size_t bytes) { return allocation_fails() ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) {
  return allocation_fails() ? nullptr : __libc_calloc(count, bytes);
}
}
#endif

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;

// A stopped process is not dead, however long a busy machine takes to continue it.
const RunOptions patient{.environment = {{"PTL_PEER_TIMEOUT_MS", "60000"}},
                         .deadline = test_deadline};

// spec 3.15.2, 3.15.3, 2.9
TEST(ExhaustionTest, BothSidesFloodEachOtherWithoutDeadlock) {
  run_ranks(2, [](Rank& rank) {
    constexpr ptl_size_t count = 10'000;
    std::vector<std::byte> memory(8192);
    const Interface interface(rank, matching_physical);
    interface.allocate(pt_index);
    interface.append(pt_index,
                     {.start = memory.data(),
                      .length = memory.size(),
                      .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
    std::vector<std::byte> buffer(8192);
    const Counter ended(interface.handle());
    const Descriptor descriptor(interface.handle(), buffer,
                                PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE,
                                ended.handle());
    rank.barrier();
    for (ptl_size_t i = 0; i < count; ++i) {
      const ptl_process_t other = interface.address(1 - rank.index());
      must(PtlPut(descriptor.handle(), 0, i % 5 == 0 ? 4000 : 40, PTL_CT_ACK_REQ, other, pt_index,
                  0, 0, nullptr, 0));
      must(PtlGet(descriptor.handle(), 0, i % 7 == 0 ? 8192 : 16, other, pt_index, 0, 0, nullptr));
    }
    ended.expect(2 * count);
    rank.barrier();
  });
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
uint64_t available_memory_mib() {
  std::ifstream meminfo("/proc/meminfo");
  std::string name;
  while (meminfo >> name && name != "MemAvailable:") {
  }
  uint64_t kib = 0;
  meminfo >> kib;
  return kib >> 10;
}

// The initiator calls nothing that takes answers. It holds back what the target has no memory to
// answer. Not with sanitizers: it takes too long.
// spec 3.13.3, 3.15.3, 3.15.6
TEST(ExhaustionTest, MoreGetsThanTheTargetCanAnswerAtOnceAllEnd) {
  constexpr uint64_t needed_mib = 3072;
  if (const uint64_t mib = available_memory_mib(); mib < needed_mib)
    GTEST_SKIP() << "needs " << needed_mib << " MiB of memory, and " << mib << " are available";
  RunOptions options = patient;
  options.environment.emplace_back("PTL_PROGRESS", "caller");
  options.environment.emplace_back("PTL_TRANSPORT", "local,shm");
  run_ranks(2, options, [](Rank& rank) {
    constexpr ptl_size_t length = 128;  // more than waits with the header
    constexpr ptl_size_t burst = 128;   // fits the lane to the target
    // More than the target keeps answers for: the initiator holds requests back.
    constexpr ptl_size_t count = (1u << 18) + 2048;
    constexpr auto items = length / sizeof(uint64_t);
    std::vector<uint64_t> memory(items, 1);
    const Interface interface(rank, nonmatching_physical);
    const EventQueue events(interface.handle());
    const Counter handled(interface.handle());
    const Counter replies(interface.handle());
    interface.allocate(pt_index, events.handle());
    interface.append(pt_index, {.start = memory.data(),
                                .length = length,
                                .options = PTL_LE_OP_GET | PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM |
                                           PTL_LE_EVENT_SUCCESS_DISABLE | PTL_LE_EVENT_LINK_DISABLE,
                                .counter = handled.handle()});
    std::vector<std::byte> buffer(length);
    const Descriptor counted(interface.handle(), buffer, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE,
                             replies.handle());
    const Descriptor told(interface.handle(), buffer, PTL_MD_EVENT_SEND_DISABLE, events.handle());
    std::vector<uint64_t> ones(items, 1);
    const Descriptor operands(interface.handle(), std::as_writable_bytes(std::span(ones)));
    const ptl_process_t target = interface.address(1);
    const auto get = [&](const Descriptor& into) {
      must(PtlGet(into.handle(), 0, length, target, pt_index, 0, 0, nullptr));
    };
    // They have arrived: this finds them without a yield, which takes long beside busy processes.
    const auto handle = [&](ptl_size_t requests) {
      ptl_ct_event_t event;
      must(PtlCTWait(handled.handle(), requests, &event));
    };
    for (ptl_size_t started = 0; started < count; started += burst) {
      if (rank.index() == 0)
        for (ptl_size_t i = 0; i < burst; ++i) get(counted);
      rank.barrier();
      if (rank.index() == 1) handle(started + burst);
      rank.barrier();
    }
    if (rank.index() == 0) {
      get(told);
      must(PtlFetchAtomic(told.handle(), 0, operands.handle(), 0, length, target, pt_index, 0, 0,
                          nullptr, 0, PTL_SUM, PTL_UINT64_T));
    }
    rank.barrier();
    if (rank.index() == 1) handle(count + 2);
    rank.barrier();
    if (rank.index() == 0) {
      events.expect(PTL_EVENT_REPLY);
      events.expect(PTL_EVENT_REPLY);
      const ptl_ct_event_t ended = replies.value();
      EXPECT_EQ(ended.success, count);
      EXPECT_EQ(ended.failure, 0u);
      get(told);
      events.expect(PTL_EVENT_REPLY);
      EXPECT_EQ(buffer[0], std::byte{2}) << "the target had done the atomic";
      rank.raise(1);
    } else {
      handle(count + 3);
      events.expect_empty();
      rank.await(0, 1);
    }
  });
}

// Not with sanitizers: they need an unlimited address space.
std::size_t address_space_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0;
  statm >> pages;
  return pages * 4096;
}

// spec 3.5.1, 3.6.2
TEST(ExhaustionTest, InitializationReturnsWhicheverAllocationFails) {
  constexpr int failed_slot = 0;
  const RunOptions options{.environment = {{"PTL_TRANSPORT", "local,shm,udp"}}};
  run_ranks(1, options, [](Rank& rank) {
    bool failed = true;
    for (long after = 0; failed; ++after) {
      const int status = run_child([&] {
        ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
        const auto open = [&] {
          return PtlNIInit(PTL_IFACE_DEFAULT, matching_physical.options(), PTL_PID_ANY, nullptr,
                           nullptr, &handle);
        };
        allocations_left = after;
        const int init_code = PtlInit();
        int open_code = init_code == PTL_OK ? open() : PTL_OK;
        allocations_left = unlimited;
        rank.publish(failed_slot, one_has_failed);
        EXPECT_TRUE(init_code == PTL_OK || init_code == PTL_FAIL || init_code == PTL_NO_SPACE)
            << return_code_name(init_code);
        EXPECT_TRUE(open_code == PTL_OK || open_code == PTL_NO_SPACE)
            << return_code_name(open_code);
        // With memory again it works.
        if (init_code != PTL_OK) must(PtlInit());
        if (handle == PTL_INVALID_HANDLE) must(open());
        const Counter counter(handle);
        counter.add(1);
        counter.expect(1);
        must(PtlNIFini(handle));
        PtlFini();
      });
      ASSERT_EQ(status, 0) << "the allocation after " << after << " others has failed";
      failed = rank.published<bool>(0, failed_slot);
    }
  });
}

// spec 3.6.2
TEST(ExhaustionTest, WithoutAddressSpaceTheInterfaceIsRefused) {
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
    for (const std::size_t allowance_kib : {64u, 1024u, 4096u, 16384u, 32768u}) {
      const rlimit tight{address_space_bytes() + allowance_kib * 1024, before.rlim_max};
      ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
      ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
      const int code = PtlNIInit(PTL_IFACE_DEFAULT, matching_physical.options(), PTL_PID_ANY,
                                 nullptr, nullptr, &handle);
      if (code == PTL_OK) must(PtlNIFini(handle));
      ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
      EXPECT_TRUE(code == PTL_OK || code == PTL_NO_SPACE) << return_code_name(code);
    }
    const Interface interface(matching_physical, {});  // with address space again it works
    const Counter counter(interface.handle());
    counter.add(1);
    counter.expect(1);
  });
}

// spec 3.6.2
TEST(ExhaustionTest, FourGibibytesOfAddressSpaceAreEnoughForTwoProcessesAndTheirChildren) {
  run_ranks(2, [](Rank& rank) {
    const rlimit limit{rlim_t{4} << 30, rlim_t{4} << 30};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    rank.initialise();
    const Interface interface(rank, matching_physical);
    rank.barrier();
    const pid_t child = fork();
    if (child == 0) {
      // The memory of the parent still counts.
      ptl_handle_ni_t own = PTL_INVALID_HANDLE;
      const int code = PtlInit() == PTL_OK
                           ? PtlNIInit(PTL_IFACE_DEFAULT, matching_physical.options(), PTL_PID_ANY,
                                       nullptr, nullptr, &own)
                           : PTL_FAIL;
      _exit(code == PTL_OK ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    rank.barrier();
  });
}
#endif

// spec 3.6.2
TEST(ExhaustionTest, WithoutFileDescriptorsTheInterfaceIsRefused) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the undefined-behaviour sanitizer needs descriptors to look at an object's type";
#endif
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none{3, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
    const int code = PtlNIInit(PTL_IFACE_DEFAULT, matching_physical.options(), PTL_PID_ANY, nullptr,
                               nullptr, &handle);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_TRUE(code == PTL_OK || code == PTL_NO_SPACE) << return_code_name(code);
    if (code != PTL_OK) {
      const Interface interface(matching_physical, {});
      const Counter counter(interface.handle());
      counter.add(1);
      counter.expect(1);
    }
  });
}

}  // namespace
}  // namespace lintel::test

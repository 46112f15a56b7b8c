// Memory accessed by devices: unmapped and mapped again, discarded, shared with a child, or beyond
// a low limit on locked memory. Over queue pairs, and with datagrams only.
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/rdma.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;

class RdmaMemoryTest : public testing::TestWithParam<Rdma> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_rdma(); !why.empty()) GTEST_SKIP() << why;
  }
  static void run(const std::function<void(Rank&)>& body,
                  std::vector<std::pair<std::string, std::string>> environment = {}) {
    environment.emplace_back("PTL_PEER_TIMEOUT_MS", rdma_timeout_ms());
    run_ranks(2, {.environment = std::move(environment), .deadline = 3 * test_deadline},
              [&](Rank& rank) {
                join_rdma(rank.index(), GetParam());
                body(rank);
              });
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, RdmaMemoryTest, testing::Values(Rdma::connected, Rdma::datagrams),
                         [](const auto& info) {
                           return info.param == Rdma::connected ? "verbs" : "verbs_ud";
                         });

// Maps pages at an address that the kernel chooses, or again at the given one.
std::span<std::byte> map_pages(std::size_t bytes, void* at = nullptr) {
  void* const address =
      mmap(at, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED_NOREPLACE : 0), -1, 0);
  if (address == MAP_FAILED) throw std::runtime_error("mmap");
  return {static_cast<std::byte*>(address), bytes};
}

// Both ranks have an entry for puts and gets over some pages, and rank 0 has a descriptor over its
// pages.
class Exchange {
 public:
  explicit Exchange(Rank& rank, std::size_t bytes = 1u << 20u)
      : memory(map_pages(bytes)),
        rank_(rank),
        interface_(rank, matching_physical),
        events_(interface_.handle(), 256) {
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(interface_.handle(), 0, PTL_EQ_NONE, pt_index, &index));
    interface_.append(pt_index,
                      {.start = memory.data(),
                       .length = memory.size(),
                       .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
    descriptor_ = Descriptor(interface_.handle(), memory, 0, events_.handle());
    rank.barrier();
  }
  // Rank 0 puts the pattern `seed`, and rank 1 checks it; get() is the opposite direction.
  void put(uint32_t seed) {
    if (rank_.index() == 0) {
      fill(memory, seed);
      must(PtlPut(descriptor_.handle(), 0, memory.size(), PTL_ACK_REQ, interface_.address(1),
                  pt_index, 0, 0, nullptr, 0));
      events_.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK});
    }
    rank_.barrier();
    if (rank_.index() == 1) expect_pattern(memory, seed);
    rank_.barrier();
  }
  void get(uint32_t seed) {
    if (rank_.index() == 1) fill(memory, seed);
    rank_.barrier();
    if (rank_.index() == 0) {
      must(PtlGet(descriptor_.handle(), 0, memory.size(), interface_.address(1), pt_index, 0, 0,
                  nullptr));
      EXPECT_EQ(events_.expect(PTL_EVENT_REPLY).mlength, memory.size());
      expect_pattern(memory, seed);
    }
    rank_.barrier();
  }

  std::span<std::byte> memory;

 private:
  Rank& rank_;
  Interface interface_;
  EventQueue events_;
  Descriptor descriptor_;
};

// A registration at an address must not be used for memory that is mapped there later.
// spec 3.10.1, 3.12.1
TEST_P(RdmaMemoryTest, PagesMappedAnewAreTheOnesThatCount) {
  run([](Rank& rank) {
    Exchange exchange(rank);
    for (uint32_t round = 0; round < 3; ++round) {
      exchange.put(10 * round);
      exchange.get(10 * round + 1);
      munmap(exchange.memory.data(), exchange.memory.size());
      static_cast<void>(map_pages(exchange.memory.size(), exchange.memory.data()));
      rank.barrier();  // The next put needs the new pages of both.
    }
  });
}

// spec 3.10.1, 3.12.1
TEST_P(RdmaMemoryTest, DiscardedPagesAreTheOnesThatCount) {
  run([](Rank& rank) {
    Exchange exchange(rank);
    for (uint32_t round = 0; round < 3; ++round) {
      exchange.put(10 * round);
      exchange.get(10 * round + 1);
      madvise(exchange.memory.data(), exchange.memory.size(), MADV_DONTNEED);
      rank.barrier();  // Otherwise rank 1 could discard what the next put has brought.
    }
  });
}

// After a fork, a write gives new pages to the parent or to the child. Devices must access the
// pages of the parent.
// spec 3.5, 3.10.1
TEST_P(RdmaMemoryTest, PagesSharedWithAChildStayThoseOfTheParent) {
  run([](Rank& rank) {
    Exchange exchange(rank);
    exchange.put(1);
    int release[2];
    ASSERT_EQ(pipe(release), 0);
    const pid_t child = fork();
    if (child == 0) {
      // The child keeps the old pages mapped until the parent has finished.
      close(release[1]);
      char end = 0;
      static_cast<void>(!read(release[0], &end, 1));
      _exit(0);
    }
    close(release[0]);
    for (uint32_t round = 0; round < 2; ++round) {
      exchange.put(10 * round + 2);
      exchange.get(10 * round + 3);
    }
    close(release[1]);
  });
}

// root may lock any amount of memory unless it gives up this capability.
void give_up_the_privilege_to_lock() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  must(syscall(SYS_capget, &header, data) == 0 ? PTL_OK : PTL_FAIL);
  data[0].effective &= ~(1u << CAP_IPC_LOCK);
  data[0].permitted &= ~(1u << CAP_IPC_LOCK);
  data[0].inheritable &= ~(1u << CAP_IPC_LOCK);
  must(syscall(SYS_capset, &header, data) == 0 ? PTL_OK : PTL_FAIL);
}

void may_lock(rlim_t most) {
  give_up_the_privilege_to_lock();
  const rlimit limit{most, most};
  must(setrlimit(RLIMIT_MEMLOCK, &limit) == 0 ? PTL_OK : PTL_FAIL);
}

// The library itself locks most of this; the pages of a message do not fit into the rest.
constexpr rlim_t lockable_by_library = 6u << 20u;
constexpr std::size_t more_than_lockable = 7u << 20u;

// Enough for the library's own buffers, but not for those of the application. Data of memory that
// cannot be registered are copied into messages.
// spec 3.10.1
TEST_P(RdmaMemoryTest, LongMessagesArriveWhereTheirMemoryCannotBeLocked) {
  run(
      [](Rank& rank) {
        may_lock(lockable_by_library);
        Exchange exchange(rank, more_than_lockable);
        exchange.put(1);
        exchange.get(2);
      },
      {{"PTL_VERBS_RECEIVE_BUFFERS", "64"}});
}

// Not even enough for the library: the device is not used, and no process hangs.
// spec 3.6.2
TEST_P(RdmaMemoryTest, WithoutLockedMemoryNobodyIsReachedAndNothingHangs) {
  run([](Rank& rank) {
    may_lock(16u << 10u);
    const Interface interface(rank, matching_physical);
    if (rank.index() == 0) {
      std::vector<std::byte> memory(64);
      const EventQueue events(interface.handle(), 64);
      const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
      must(PtlPut(descriptor.handle(), 0, 8, PTL_ACK_REQ, interface.address(1), pt_index, 0, 0,
                  nullptr, 0));
      events.expect(PTL_EVENT_SEND, PTL_NI_UNDELIVERABLE);
    }
    rank.barrier();
  });
}

}  // namespace
}  // namespace lintel::test

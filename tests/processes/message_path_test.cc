// The message path makes no system call and no allocation: both are counted while messages flow.
//
// System calls are counted with the kernel's syscall user dispatch: while a byte of this thread is
// set, a system call raises SIGSYS instead. The handler counts the call and permits further calls
// until the next message. Allocations are counted by a malloc of this test.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <type_traits>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/rdma.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LINTEL_COUNTS_ALLOCATIONS 0
#else
#define LINTEL_COUNTS_ALLOCATIONS 1
#endif

namespace {
std::atomic<uint64_t> allocations{0};
}

#if LINTEL_COUNTS_ALLOCATIONS
extern "C" {
void* __libc_malloc(size_t bytes);            // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t n);  // NOLINT(bugprone-reserved-identifier)

void* malloc(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}
}
#endif

namespace lintel::test {
namespace {

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON 1
#define SYSCALL_DISPATCH_FILTER_ALLOW 0
#define SYSCALL_DISPATCH_FILTER_BLOCK 1
#endif

volatile char dispatch = SYSCALL_DISPATCH_FILTER_ALLOW;
volatile uint64_t system_calls = 0;
volatile int last_system_call = -1;
volatile uint64_t yields = 0;
volatile bool unwatched = false;  // since a yield, or a call by a device's provider
volatile bool over_rdma = false;
volatile uint64_t posts = 0;

// The provider of a device in software submits work by write() on the device's file.
bool is_of_device(int descriptor) {
  static volatile int known = -1;
  if (descriptor == known) return true;
  char link[64];
  char target[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, target, sizeof target);
  if (length < 0 ||
      !std::string_view(target, static_cast<std::size_t>(length)).starts_with("/dev/infiniband/"))
    return false;
  known = descriptor;
  return true;
}

void on_system_call(int, siginfo_t* info, void* context) {
  dispatch = SYSCALL_DISPATCH_FILTER_ALLOW;
  mcontext_t& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#ifdef __x86_64__
  const auto descriptor = machine.gregs[REG_RDI];
  const auto data = machine.gregs[REG_RSI];
  const auto bytes = machine.gregs[REG_RDX];
  auto& result = machine.gregs[REG_RAX];
#else
  const auto descriptor = machine.regs[0];
  const auto data = machine.regs[1];
  const auto bytes = machine.regs[2];
  auto& result = machine.regs[0];
#endif
  if (over_rdma && info->si_syscall == SYS_write && is_of_device(static_cast<int>(descriptor))) {
    const int64_t written = syscall(SYS_write, descriptor, data, bytes);
    result = static_cast<std::remove_reference_t<decltype(result)>>(written < 0 ? -errno : written);
    posts = posts + 1;
    unwatched = true;
    return;
  }
  // A thread that has polled for long without a message yields. That is not part of moving a
  // message.
  if (info->si_syscall == SYS_sched_yield) {
    yields = yields + 1;
    unwatched = true;
    return;
  }
  system_calls = system_calls + 1;
  last_system_call = info->si_syscall;
}

#ifdef __SANITIZE_THREAD__
constexpr bool signals_come_at_once = false;
constexpr const char* no_counter =
    "the thread sanitizer defers the signal that tells of system calls";
#else
constexpr bool signals_come_at_once = true;
constexpr const char* no_counter = "no syscall user dispatch in this kernel";
#endif

// Counts what the calling thread does between arm() and disarm(). Each arm() detects at most one
// system call, so it is called again for every message.
class MessagePathCounter {
 public:
  MessagePathCounter() {
    struct sigaction action {};
    action.sa_sigaction = &on_system_call;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &action, nullptr);
    available_ = signals_come_at_once &&
                 prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &dispatch) == 0;
  }
  [[nodiscard]] bool available() const { return available_; }
  static void arm() { dispatch = SYSCALL_DISPATCH_FILTER_BLOCK; }
  static void disarm() { dispatch = SYSCALL_DISPATCH_FILTER_ALLOW; }

 private:
  bool available_ = false;
};

constexpr ptl_pt_index_t pt_index = 4;
constexpr int warm_up = 6000;  // every ring has wrapped around at least once
constexpr int messages = 20000;

ptl_event_t poll_for(const EventQueue& events, ptl_event_kind_t kind) {
  ptl_event_t event;
  for (;;) {
    const int code = PtlEQGet(events.handle(), &event);
    if (unwatched) {
      unwatched = false;
      MessagePathCounter::arm();
    }
    if (code == PTL_OK && event.type == kind) return event;
    if (code == PTL_OK || code == PTL_EQ_EMPTY) continue;
    MessagePathCounter::disarm();
    must(code);
  }
}

void expect_few(uint64_t most_calls, [[maybe_unused]] uint64_t most_allocations = 0) {
  EXPECT_LE(system_calls, most_calls) << "the last was system call " << last_system_call;
#if LINTEL_COUNTS_ALLOCATIONS
  EXPECT_LE(allocations.load(), most_allocations);
#endif
}

// spec 1.6
// A process that sends to itself may make only the system calls that check for dead peers, twice a
// second.
TEST(MessagePathTest, NoSystemCallAndNoAllocationWithinAProcess) {
  run_ranks(1, [](Rank& rank) {
    MessagePathCounter counter;
    if (!counter.available()) GTEST_SKIP() << no_counter;
    std::vector<std::byte> source(64);
    std::vector<std::byte> target(64);
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    const EventQueue sent(interface.handle());
    const Counter counted(interface.handle());
    interface.allocate(pt_index, events.handle());
    const Descriptor descriptor(interface.handle(), source, PTL_MD_EVENT_CT_ACK, sent.handle(),
                                counted.handle());
    const EntrySpec entry{.start = target.data(),
                          .length = target.size(),
                          .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE |
                                     PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE};
    for (int i = 0; i < warm_up + messages; ++i) {
      if (i == warm_up) allocations.store(0);
      if (i >= warm_up) MessagePathCounter::arm();
      interface.append(pt_index, entry);
      must(PtlPut(descriptor.handle(), 0, 8, PTL_ACK_REQ, interface.address(0), pt_index, 0, 0,
                  nullptr, 0));
      poll_for(events, PTL_EVENT_PUT);
      poll_for(sent, PTL_EVENT_ACK);
      interface.append(pt_index, entry);
      must(PtlFetchAtomic(descriptor.handle(), 8, descriptor.handle(), 0, 8, interface.address(0),
                          pt_index, 0, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T));
      poll_for(events, PTL_EVENT_FETCH_ATOMIC);
      poll_for(sent, PTL_EVENT_REPLY);
      MessagePathCounter::disarm();
    }
    expect_few(20);
    EXPECT_EQ(yields, 0u) << "nothing is waited for";
  });
}

// spec 1.6
// A collective operation by triggered operations allocates its counters, queues and entries, and
// frees them at its end, in each call.
TEST(MessagePathTest, AStepOfACollectiveWithItsOwnCounterMakesNoSystemCallAndNoAllocation) {
  run_ranks(1, [](Rank& rank) {
    MessagePathCounter counter;
    if (!counter.available()) GTEST_SKIP() << no_counter;
    std::vector<std::byte> source(64);
    std::vector<std::byte> target(64);
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    interface.allocate(pt_index, events.handle());
    const Descriptor descriptor(interface.handle(), source);
    for (int i = 0; i < warm_up + messages; ++i) {
      if (i == warm_up) allocations.store(0);
      if (i >= warm_up) MessagePathCounter::arm();
      ptl_handle_ct_t started = PTL_CT_NONE;
      ptl_handle_eq_t queue = PTL_EQ_NONE;
      must(PtlCTAlloc(interface.handle(), &started));
      must(PtlEQAlloc(interface.handle(), 4, &queue));
      interface.append(pt_index,
                       {.start = target.data(),
                        .length = target.size(),
                        .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                                   PTL_ME_EVENT_UNLINK_DISABLE});
      must(PtlTriggeredPut(descriptor.handle(), 0, 8, PTL_NO_ACK_REQ, interface.address(0),
                           pt_index, 0, 0, nullptr, 0, started, 1));
      must(PtlCTInc(started, {1, 0}));
      poll_for(events, PTL_EVENT_PUT);
      must(PtlEQFree(queue));
      must(PtlCTFree(started));
      MessagePathCounter::disarm();
    }
    expect_few(20);
  });
}

// Two ranks send messages in turn: first `uncounted` messages, then `counted` messages during which
// system calls and allocations are counted. If an answer of the peer is 200 ms late, a link that
// cannot see whether the peer runs looks for it, which allocates memory. An emulated machine on a
// busy host has such pauses.
void exchange_counted(Rank& rank, int uncounted, int counted) {
  std::vector<std::byte> source(4096);
  std::vector<std::byte> target(4096);
  const Interface interface(rank, matching_physical);
  const EventQueue events(interface.handle());
  interface.allocate(pt_index, events.handle());
  interface.append(pt_index, {.start = target.data(),
                              .length = target.size(),
                              .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
  const Descriptor descriptor(interface.handle(), source);
  rank.barrier();
  const int other = 1 - rank.index();
  constexpr std::chrono::milliseconds pause{150};
  uint64_t pauses = 0;
  for (int i = 0; i < uncounted + counted; ++i) {
    if (i == uncounted) allocations.store(0);
    const auto start = std::chrono::steady_clock::now();
    if (i >= uncounted) MessagePathCounter::arm();
    const ptl_size_t length = i % 2 == 0 ? 8 : 4096;
    if (rank.index() == 1) poll_for(events, PTL_EVENT_PUT);
    must(PtlPut(descriptor.handle(), 0, length, PTL_NO_ACK_REQ, interface.address(other), pt_index,
                0, 0, nullptr, 0));
    if (rank.index() == 0) poll_for(events, PTL_EVENT_PUT);
    MessagePathCounter::disarm();
    if (i >= uncounted && std::chrono::steady_clock::now() - start > pause) ++pauses;
  }
  expect_few(counted / 20, pauses);  // before the interface is closed
  rank.barrier();
}

// spec 1.6
// Between processes a call may wake a peer that has been without a processor for long, and its
// progress thread. A message that arrives while the peer polls needs no system call.
TEST(MessagePathTest, NoSystemCallAndNoAllocationBetweenProcesses) {
  run_ranks(2, [](Rank& rank) {
    MessagePathCounter counter;
    if (!counter.available()) GTEST_SKIP() << no_counter;
    exchange_counted(rank, warm_up, messages);
  });
}

class RdmaMessagePathTest : public testing::TestWithParam<Rdma> {};
INSTANTIATE_TEST_SUITE_P(Devices, RdmaMessagePathTest,
                         testing::Values(Rdma::connected, Rdma::datagrams), [](const auto& info) {
                           return info.param == Rdma::connected ? "verbs" : "verbs_ud";
                         });

// spec 1.6
// System calls of the providers of software devices are not counted as the library's. With
// datagrams, timers cause a system call now and then.
TEST_P(RdmaMessagePathTest, NoSystemCallOfOurOwnAndNoAllocation) {
  if (const std::string why = why_no_rdma(); !why.empty()) GTEST_SKIP() << why;
  const int few_messages = machine_slowdown() > 1 ? 800 : 2000;
  // Under emulation a round trip takes so long that a progress thread would sleep and wake in each
  // one.
  run_ranks(
      2,
      {.environment = {{"PTL_PEER_TIMEOUT_MS", rdma_timeout_ms()}, {"PTL_PROGRESS", "caller"}},
       .deadline = 3 * test_deadline},
      [few_messages](Rank& rank) {
        join_rdma(rank.index(), GetParam());
        MessagePathCounter counter;
        if (!counter.available()) GTEST_SKIP() << no_counter;
        over_rdma = true;
        exchange_counted(rank, few_messages / 4, few_messages);
      });
}

}  // namespace
}  // namespace lintel::test

// Programs that test for events in a loop, as MPI libraries do, instead of waiting. They yield the
// processor; otherwise a process whose answer they need could run only after a whole time slice.
#include <dlfcn.h>
#include <portals4_lintel.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"

namespace {
thread_local uint64_t yields = 0;    // of the calling thread
thread_local uint64_t receives = 0;  // the same: system calls that read a socket

long forward(long number, long a, long b, long c, long d, long e, long f) noexcept {
  using Call = long (*)(long, ...);
  static const auto next = reinterpret_cast<Call>(dlsym(RTLD_NEXT, "syscall"));
  return next(number, a, b, c, d, e, f);
}
}  // namespace

// These replace the functions of the C library. No system call has more than six arguments.
extern "C" [[gnu::visibility("default")]] long syscall(long number, ...) noexcept {
  if (number == SYS_recvfrom || number == SYS_recvmmsg) ++receives;
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  return forward(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                 arguments[5]);
}

extern "C" int sched_yield() noexcept {
  ++yields;
  return static_cast<int>(syscall(SYS_sched_yield));
}

namespace lintel::test {
namespace {

using Poll = int (*)(ptl_handle_eq_t events, ptl_event_t* event);

int by_get(ptl_handle_eq_t events, ptl_event_t* event) { return PtlEQGet(events, event); }

int by_poll(ptl_handle_eq_t events, ptl_event_t* event) {
  unsigned which = 0;
  return PtlEQPoll(&events, 1, 0, event, &which);
}

class PollingTest : public testing::TestWithParam<Poll> {};
INSTANTIATE_TEST_SUITE_P(Calls, PollingTest, testing::Values(by_get, by_poll),
                         [](const auto& info) {
                           return info.param == by_get ? "PtlEQGet" : "PtlEQPoll";
                         });

// spec 1.6, 3.13.7, 3.13.9
TEST_P(PollingTest, ALoopLetsOthersHaveTheProcessor) {
  run_ranks(1, [poll = GetParam()](Rank& rank) {
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    const uint64_t before = yields;
    ptl_event_t event{};
    const auto deadline = std::chrono::steady_clock::now() + wait_deadline;
    while (yields == before && std::chrono::steady_clock::now() < deadline)
      for (int i = 0; i < 1000; ++i) ASSERT_EQ(poll(events.handle(), &event), PTL_EQ_EMPTY);
    EXPECT_GT(yields, before);
  });
}

// The waiting thread also polls for the thread that loops, but may need the processor for that.
// spec 1.6, 3.13.7, 3.13.9
TEST_P(PollingTest, ALoopBesideOneThatWaitsLetsItHaveTheProcessor) {
  RunOptions options;
  options.environment = {{"PTL_PROGRESS", "caller"}};  // no progress thread sleeps
  run_ranks(1, options, [poll = GetParam()](Rank& rank) {
    const Interface interface(rank, matching_physical);
    const EventQueue awaited(interface.handle());
    const EventQueue looked_at(interface.handle());
    std::vector<std::byte> memory(8);
    std::thread waiting([&] { awaited.expect(PTL_EVENT_LINK); });
    const auto deadline = std::chrono::steady_clock::now() + wait_deadline;
    // The waiting thread sleeps as the one that polls for all.
    while (interface.status(PTL_SR_LINTEL_SLEEPS) == 0)
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    ptl_event_t event{};
    const uint64_t before = yields;
    for (int i = 0; i < 300; ++i) ASSERT_EQ(poll(looked_at.handle(), &event), PTL_EQ_EMPTY);
    EXPECT_GT(yields, before);
    const ptl_pt_index_t index = interface.allocate(PTL_PT_ANY, awaited.handle());
    interface.append(index,
                     {.start = memory.data(), .length = memory.size(), .options = PTL_ME_OP_PUT});
    waiting.join();
  });
}

// Messages that are queued for the stopped process in shared memory stay there, however often the
// caller yields.
// spec 1.6, 3.15.2
TEST(PollingByPutsTest, PutsToAStoppedProcessDoNotYieldAgainAndAgain) {
  const RunOptions patient{
      .environment = {{"PTL_PEER_TIMEOUT_MS", "60000"}, {"PTL_TRANSPORT", "local,shm"}}};
  run_ranks(2, patient, [](Rank& rank) {
    constexpr ptl_size_t count = 4'000;
    std::vector<std::byte> memory(1024);
    const Interface interface(rank, nonmatching_physical);
    const ptl_pt_index_t index = interface.allocate(3);
    interface.append(index,
                     {.start = memory.data(), .length = memory.size(), .options = PTL_ME_OP_PUT});
    rank.publish(rank.index(), getpid());
    rank.barrier();
    if (rank.index() == 0) {
      const auto target = rank.published<pid_t>(1, 1);
      const Counter acks(interface.handle());
      const Descriptor descriptor(interface.handle(), memory, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE,
                                  acks.handle());
      const auto put = [&] {
        must(PtlPut(descriptor.handle(), 0, memory.size(), PTL_CT_ACK_REQ, interface.address(1),
                    index, 0, 0, nullptr, 0));
      };
      put();
      acks.expect(1);
      ASSERT_EQ(kill(target, SIGSTOP), 0);
      const uint64_t before = yields;
      for (ptl_size_t i = 1; i < count; ++i) put();
      EXPECT_LT(yields - before, 1000u);
      ASSERT_EQ(kill(target, SIGCONT), 0);
      acks.expect(count);
    }
    rank.barrier();
  });
}

// A spin lock in the process's own memory works like that: another process releases it.
// spec 1.6
TEST(PollingByPutsTest, AProcessThatPutsToItselfHearsOthers) {
  RunOptions options;
  options.environment = {{"PTL_PROGRESS", "caller"}};  // no other thread polls
  run_ranks(2, options, [](Rank& rank) {
    constexpr ptl_pt_index_t own_index = 4;
    constexpr ptl_pt_index_t index_of_others = 5;
    alignas(8) std::byte own[8]{};
    uint64_t opened = 0;
    std::vector<std::byte> source(8, std::byte{1});
    const Interface interface(rank, matching_physical);
    const Counter acknowledged(interface.handle());
    for (const ptl_pt_index_t wanted : {own_index, index_of_others}) {
      const ptl_pt_index_t index = interface.allocate(wanted);
      interface.append(index, {.start = wanted == own_index ? static_cast<void*>(own) : &opened,
                               .length = 8,
                               .options = PTL_ME_OP_PUT});
    }
    const Descriptor descriptor(interface.handle(), source, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE,
                                acknowledged.handle());
    rank.barrier();
    if (rank.index() == 1) {
      must(PtlPut(descriptor.handle(), 0, 8, PTL_CT_ACK_REQ, interface.address(0), index_of_others,
                  0, 0, nullptr, 0));
      acknowledged.expect(1);
    } else {
      const auto deadline = std::chrono::steady_clock::now() + wait_deadline;
      while (std::atomic_ref(opened).load(std::memory_order_acquire) == 0) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline);
        must(PtlPut(descriptor.handle(), 0, 8, PTL_NO_ACK_REQ, interface.address(0), own_index, 0,
                    0, nullptr, 0));
      }
    }
    rank.barrier();
  });
}

// The call that returned an event has just polled the network. If the program calls again at once
// until the queue is empty, these calls do not poll. A call some time later does.
// spec 3.13.7
TEST(PollingAfterNewsTest, LooksForMoreAskNoSocket) {
  RunOptions options;
  options.environment = {{"PTL_TRANSPORT", "udp"}, {"PTL_PROGRESS", "caller"}};
  run_ranks(2, options, [](Rank& rank) {
    constexpr unsigned messages = 200;
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    std::vector<std::byte> memory(64);
    const ptl_pt_index_t index = interface.allocate(PTL_PT_ANY, events.handle());
    if (rank.index() == 1)
      interface.append(index, {.start = memory.data(),
                               .length = memory.size(),
                               .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
    rank.barrier();
    const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
    ptl_event_t event{};
    unsigned spared = 0;
    unsigned asked = 0;
    for (unsigned i = 0; i < messages; ++i) {
      if (rank.index() == 0) {
        must(PtlPut(descriptor.handle(), 0, 8, PTL_ACK_REQ, interface.address(1), index, 0, 0,
                    nullptr, 0));
        events.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK});
      } else {
        const auto deadline = std::chrono::steady_clock::now() + wait_deadline;
        while (PtlEQGet(events.handle(), &event) != PTL_OK)
          ASSERT_LT(std::chrono::steady_clock::now(), deadline);
        const uint64_t before = receives;
        for (int k = 0; k < 3; ++k) EXPECT_EQ(PtlEQGet(events.handle(), &event), PTL_EQ_EMPTY);
        if (receives == before) ++spared;  // unless this rank was without a processor in between
        std::this_thread::sleep_for(std::chrono::microseconds(10));
        const uint64_t later = receives;
        EXPECT_EQ(PtlEQGet(events.handle(), &event), PTL_EQ_EMPTY);
        if (receives != later)
          ++asked;  // unless the socket was quiet for so long that a thread watches it
      }
      rank.barrier();
    }
    if (rank.index() == 0) return;
    EXPECT_GT(spared, 0u);
    EXPECT_GT(asked, 0u);
  });
}

}  // namespace
}  // namespace lintel::test

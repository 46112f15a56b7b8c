// Progress while the application makes no calls, and the processor time of an idle process.
#include <portals4_lintel.h>
#include <sys/resource.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <fstream>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"
#include "support/waiting_thread.h"

namespace lintel::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr ptl_pt_index_t pt_index = 4;

constexpr int served_flag = 0;

// Computes and makes no call of Portals until the other rank reports that its operation has ended.
void compute_until_served(Rank& rank, int other) {
  const auto give_up = Clock::now() + wait_deadline;
  volatile double x = 1.0;
  while (rank.flag(other, served_flag) == 0) {
    for (int i = 0; i < 1000; ++i) x = x * 1.0000001 + 0.5;
    ASSERT_LT(Clock::now(), give_up) << "the other rank was not served while this one computed";
  }
}

class ProgressTest : public testing::TestWithParam<InterfaceKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, ProgressTest, testing::ValuesIn(all_interface_kinds),
                         [](const auto& info) { return info.param.name(); });

// Rank 0 accesses the memory of rank 1, which computes and makes no call.
void serve_while_computing(InterfaceKind kind, const RunOptions& options, std::size_t bytes,
                           const std::function<void(Interface&, const EventQueue&)>& work) {
  run_ranks(2, options, [&](Rank& rank) {
    std::vector<std::byte> memory(bytes);
    Interface interface(rank, kind);
    if (rank.index() == 1) {
      fill(memory, 12);
      interface.allocate(pt_index);
      interface.append(pt_index,
                       {.start = memory.data(),
                        .length = memory.size(),
                        .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
    }
    rank.barrier();
    if (rank.index() == 1) {
      compute_until_served(rank, 0);
    } else {
      const EventQueue events(interface.handle());
      work(interface, events);
      rank.raise(served_flag);
    }
    rank.barrier();
  });
}

void get_and_verify(Interface& interface, const EventQueue& events, std::size_t bytes) {
  std::vector<std::byte> fetched(bytes);
  Descriptor destination(interface.handle(), fetched, 0, events.handle());
  must(PtlGet(destination.handle(), 0, bytes, interface.address(1), pt_index, 0, 0, nullptr));
  events.expect(PTL_EVENT_REPLY);
  expect_pattern(fetched, 12);
  destination.release();
}

// spec 1.6, 3.15.3
TEST_P(ProgressTest, AGetCompletesWhileItsTargetComputes) {
  for (const std::size_t bytes : {8u, 5000u, 4u << 20u}) {
    serve_while_computing(GetParam(), {}, bytes,
                          [&](Interface& interface, const EventQueue& events) {
                            for (int i = 0; i < 10; ++i) get_and_verify(interface, events, bytes);
                          });
  }
}

// spec 1.6, 3.15.3
TEST_P(ProgressTest, AGetCompletesWhileItsTargetComputesWithoutDirectAccess) {
  const RunOptions options{.environment = {{"PTL_SHM_CMA", "0"}}};
  serve_while_computing(GetParam(), options, 4u << 20u,
                        [&](Interface& interface, const EventQueue& events) {
                          get_and_verify(interface, events, 4u << 20u);
                        });
}

// spec 1.6, 3.15.2, 3.15.6
TEST_P(ProgressTest, PutsAndAtomicsCompleteWhileTheirTargetComputes) {
  serve_while_computing(GetParam(), {}, 4096, [](Interface& interface, const EventQueue& events) {
    std::vector<std::byte> memory(4096);
    const Descriptor descriptor(interface.handle(), memory, PTL_MD_EVENT_SEND_DISABLE,
                                events.handle());
    for (int i = 0; i < 20; ++i) {
      must(PtlPut(descriptor.handle(), 0, 2000, PTL_ACK_REQ, interface.address(1), pt_index, 0, 0,
                  nullptr, 0));
      events.expect(PTL_EVENT_ACK);
      must(PtlFetchAtomic(descriptor.handle(), 1024, descriptor.handle(), 0, 64,
                          interface.address(1), pt_index, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T));
      events.expect(PTL_EVENT_REPLY);
    }
  });
}

// spec 1.6, 3.15.3
TEST(ProgressWakeTest, AGetEndsSoonAfterItsTargetStoppedToPoll) {
  // More than four ticks of 20 ms pass while the target polls. The fifth tick would end after 170
  // ms, and the thread would poll 320 ms later.
  const RunOptions options{
      .environment = {{"PTL_PROGRESS_TICK_US", "20000"}, {"PTL_TRANSPORT", "local,shm"}}};
  constexpr std::chrono::milliseconds polls_for(450);
  constexpr std::chrono::milliseconds most(200);
  run_ranks(2, options, [&](Rank& rank) {
    std::vector<std::byte> memory(8);
    Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    interface.allocate(pt_index);
    interface.append(pt_index, {.start = memory.data(),
                                .length = memory.size(),
                                .options = PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
    if (rank.index() == 1) fill(memory, 12);
    rank.barrier();
    if (rank.index() == 1) {
      ptl_event_t event;
      const auto end = Clock::now() + polls_for;
      while (Clock::now() < end) EXPECT_EQ(PtlEQGet(events.handle(), &event), PTL_EQ_EMPTY);
    } else {
      get_and_verify(interface, events, 8);  // wakes the progress thread, which sleeps until then
    }
    rank.barrier();
    if (rank.index() == 1) {
      compute_until_served(rank, 0);
    } else {
      const auto start = Clock::now();
      get_and_verify(interface, events, 8);
      EXPECT_LT(Clock::now() - start, most * slowdown);
      rank.raise(served_flag);
    }
    rank.barrier();
  });
}

// spec 1.6, 3.16
TEST_P(ProgressTest, TriggeredOperationsFireInAProcessThatComputes) {
  run_ranks(2, [&](Rank& rank) {
    std::vector<std::byte> memory(64);
    const Interface interface(rank, GetParam());
    const EventQueue events(interface.handle());
    const Counter arrived(interface.handle());
    const Descriptor descriptor(interface.handle(), memory);
    interface.allocate(pt_index, events.handle());
    interface.append(pt_index,
                     {.start = memory.data(),
                      .length = memory.size(),
                      .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM,
                      .counter = arrived.handle()});
    constexpr ptl_size_t rounds = 20;
    if (rank.index() == 1) {
      for (ptl_size_t i = 1; i <= rounds; ++i) {
        must(PtlTriggeredPut(descriptor.handle(), 0, 8, PTL_NO_ACK_REQ, interface.address(0),
                             pt_index, 0, 0, nullptr, i, arrived.handle(), i));
      }
    }
    rank.barrier();
    if (rank.index() == 1) {
      compute_until_served(rank, 0);
    } else {
      for (ptl_size_t i = 1; i <= rounds; ++i) {
        must(PtlPut(descriptor.handle(), 0, 8, PTL_NO_ACK_REQ, interface.address(1), pt_index, 0, 0,
                    nullptr, 0));
        EXPECT_EQ(events.expect(PTL_EVENT_PUT).hdr_data, i);
      }
      rank.raise(served_flag);
    }
    rank.barrier();
  });
}

const RunOptions within_process{.environment = {{"PTL_TRANSPORT", "local"}}};

// Nobody polls, and the next message to the own process must wake the progress thread.
bool progress_sleeps(const Interface& interface) {
  return interface.status(PTL_SR_LINTEL_SLEEPS) != interface.status(PTL_SR_LINTEL_WAKEUPS);
}

// While the progress thread sleeps, threads set off chains of messages to their own process, which
// are longer than a call handles in passing. One of the threads waits for some of them. Then nobody
// makes a call until all have ended: who gives up the poll token with something left, or sends
// while another thread has it, must wake the progress thread.
// spec 1.6, 3.15.5, 3.16
TEST(ProgressWakeTest, MessagesToItselfEndThoughNoThreadCallsAnything) {
  run_ranks(1, within_process, [](Rank& rank) {
    constexpr uint64_t threads = 3;
    constexpr uint64_t chain = 300;
    constexpr ptl_size_t rounds = 100;
    const Interface interface(rank, matching_physical);
    uint64_t sums[threads] = {};
    const ptl_pt_index_t index = interface.allocate(pt_index);
    std::barrier<> together(threads);
    const auto await = [](const char* what, const auto& condition) {
      const auto give_up = Clock::now() + wait_deadline;
      while (!condition()) {
        ASSERT_LT(Clock::now(), give_up) << what;
        std::this_thread::yield();
      }
    };
    const auto run = [&](uint64_t number) {
      uint64_t one = 1;
      const Counter arrived(interface.handle());
      const Counter acks(interface.handle());
      const Descriptor descriptor(interface.handle(), std::as_writable_bytes(std::span(&one, 1)),
                                  PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acks.handle());
      const ptl_process_t self = interface.address(0);
      const ptl_match_bits_t starts = threads + number;
      interface.append(index, {.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                               .counter = arrived.handle(),
                               .match_bits = starts});
      interface.append(index, {.start = &sums[number],
                               .length = sizeof one,
                               .options = PTL_ME_OP_PUT,
                               .match_bits = number});
      for (ptl_size_t round = 1; round <= rounds; ++round) {
        for (uint64_t i = 0; i < chain; ++i)
          must(PtlTriggeredAtomic(descriptor.handle(), 0, sizeof one, PTL_CT_ACK_REQ, self, index,
                                  number, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T, arrived.handle(),
                                  round));
        together.arrive_and_wait();
        await("the progress thread does not sleep", [&] { return progress_sleeps(interface); });
        together.arrive_and_wait();
        must(PtlPut(descriptor.handle(), 0, 0, PTL_NO_ACK_REQ, self, index, starts, 0, nullptr, 0));
        ptl_ct_event_t event;
        if (number == round % (threads + 1))
          must(PtlCTWait(acks.handle(), (round - 1) * chain + round, &event));
        await("messages to the own process wait, and nobody polls",
              [&] { return std::atomic_ref(sums[number]).load() == round * chain; });
        together.arrive_and_wait();
      }
      acks.expect(rounds * chain);
    };
    std::vector<std::thread> others;
    for (uint64_t number = 1; number < threads; ++number)
      others.push_back(start_thread([&run, number] { run(number); }));
    run(0);
    for (std::thread& other : others) other.join();
  });
}

// The call that starts the message moves a part of its data, and leaves the rest to the progress
// thread.
// spec 1.6, 3.15.2, 3.16
TEST(ProgressWakeTest, ALongMessageToItselfEndsThoughNoThreadCallsAnything) {
  run_ranks(1, within_process, [](Rank& rank) {
    constexpr ptl_size_t rounds = 5;
    const Interface interface(rank, nonmatching_physical);
    const Counter arrived(interface.handle());
    std::vector<std::byte> memory(8u << 20u);
    std::vector<std::byte> source(memory.size());
    uint64_t ended = 0;
    uint64_t one = 1;
    const Descriptor long_source(interface.handle(), source);
    const Descriptor operand(interface.handle(), std::as_writable_bytes(std::span(&one, 1)));
    const ptl_process_t self = interface.address(0);
    ptl_pt_index_t to_memory = 0;
    ptl_pt_index_t to_ended = 0;
    must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, PTL_PT_ANY, &to_memory));
    must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, PTL_PT_ANY, &to_ended));
    interface.append(to_memory, {.start = memory.data(),
                                 .length = memory.size(),
                                 .options = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM,
                                 .counter = arrived.handle()});
    interface.append(to_ended, {.start = &ended, .length = sizeof ended, .options = PTL_LE_OP_PUT});
    for (ptl_size_t round = 1; round <= rounds; ++round) {
      must(PtlTriggeredAtomic(operand.handle(), 0, sizeof one, PTL_NO_ACK_REQ, self, to_ended, 0, 0,
                              nullptr, 0, PTL_SUM, PTL_UINT64_T, arrived.handle(), round));
      rank.await_condition("waiting until the progress thread sleeps",
                           [&] { return progress_sleeps(interface); });
      must(PtlPut(long_source.handle(), 0, source.size(), PTL_NO_ACK_REQ, self, to_memory, 0, 0,
                  nullptr, 0));
      rank.await_condition("waiting until a message to the own process has ended",
                           [&] { return std::atomic_ref(ended).load() == round; });
    }
  });
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Two processes sleep for a second with an interface open, optionally after some traffic.
void expect_idle(InterfaceKind kind, bool after_traffic) {
  run_ranks(2, [&](Rank& rank) {
    std::vector<std::byte> memory(64);
    const Interface interface(rank, kind);
    const EventQueue events(interface.handle());
    interface.allocate(pt_index, events.handle());
    interface.append(pt_index, {.start = memory.data(),
                                .length = memory.size(),
                                .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
    rank.barrier();
    if (after_traffic) {
      const Descriptor source(interface.handle(), memory);
      for (int i = 0; i < 100; ++i) {
        must(PtlPut(source.handle(), 0, 64, PTL_NO_ACK_REQ, interface.address(1 - rank.index()),
                    pt_index, 0, 0, nullptr, 0));
        events.expect(PTL_EVENT_PUT);
      }
    }
    rank.barrier();
    rank.await_condition("waiting until the threads of the library sleep", others_are_asleep);
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const double used = cpu_seconds() - before;
    EXPECT_LT(used, 0.005 * slowdown * machine_slowdown())
        << "seconds of processor time in an idle second";
    rank.barrier();
  });
}

class CostTest : public testing::Test {};

// spec 1.6
TEST_F(CostTest, AnIdleProcessUsesNoProcessor) { expect_idle(matching_physical, false); }

// spec 1.6
TEST_F(CostTest, AProcessThatHasTalkedIsIdleAgain) { expect_idle(matching_physical, true); }

// spec 3.13.8, 1.6
TEST_F(CostTest, AWaitingThreadFallsAsleep) {
  run_ranks(1, [](Rank& rank) {
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    const Counter counter(interface.handle());
    WaitingThread waiter([&] {
      ptl_ct_event_t value{};
      must(PtlCTWait(counter.handle(), 1, &value));
    });
    waiter.await_sleep();
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const double used = cpu_seconds() - before;
    EXPECT_LT(used, 0.05 * slowdown * machine_slowdown())
        << "seconds of processor time in a second of waiting";
    counter.add(1);
    waiter.join();
  });
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Not with sanitizers: their own memory would be counted.
std::size_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmRSS:") continue;
    std::size_t kib = 0;
    status >> kib;
    return kib;
  }
  return 0;
}

// spec 3.6.2
TEST_F(CostTest, ResidentMemoryStaysSmall) {
  run_ranks(4, [](Rank& rank) {
    std::vector<std::byte> memory(64);
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    interface.allocate(pt_index, events.handle());
    interface.append(pt_index, {.start = memory.data(),
                                .length = memory.size(),
                                .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
    rank.barrier();
    const std::size_t opened = resident_kib();
    EXPECT_GT(opened, 0u);
    EXPECT_LT(opened, 24u * 1024);
    // Messages to all other ranks and from them do not change that.
    const Descriptor source(interface.handle(), memory);
    for (int round = 0; round < 200; ++round) {
      for (int to = 0; to < rank.count(); ++to) {
        must(PtlPut(source.handle(), 0, 64, PTL_NO_ACK_REQ, interface.address(to), pt_index, 0, 0,
                    nullptr, 0));
      }
      for (int from = 0; from < rank.count(); ++from) events.expect(PTL_EVENT_PUT);
    }
    EXPECT_LT(resident_kib(), 24u * 1024);
    rank.barrier();
  });
}
#endif

class HeldAcknowledgmentTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Modes, HeldAcknowledgmentTest, testing::Values("auto", "thread", "caller"),
                         [](const auto& info) { return std::string(info.param); });

// An application that has answered quickly several times is expected to answer again, so networks
// delay the acknowledgment. If the application computes and does not answer, the acknowledgment is
// sent all the same. If no other thread could send it, it is not delayed.
// spec 2.9, 3.13.3
TEST_P(HeldAcknowledgmentTest, ComesWithoutTheAnswerThatItWaitedFor) {
  run_ranks(2, {.environment = {{"PTL_PROGRESS", GetParam()}}}, [&](Rank& rank) {
    constexpr int rounds = 300;
    const Interface interface(rank, matching_physical);
    const EventQueue arrivals(interface.handle());
    const Counter acks(interface.handle());
    interface.allocate(pt_index, arrivals.handle());
    interface.append(pt_index, {.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
    const Descriptor nothing(interface.handle(), std::span<std::byte>{}, PTL_MD_EVENT_CT_ACK,
                             PTL_EQ_NONE, acks.handle());
    const ptl_process_t partner = interface.address(1 - rank.index());
    const auto put = [&] {
      must(PtlPut(nothing.handle(), 0, 0, PTL_CT_ACK_REQ, partner, pt_index, 0, 0, nullptr, 0));
    };
    rank.barrier();
    for (int i = 0; i < rounds; ++i) {
      if (rank.index() == 0) put();
      arrivals.expect(PTL_EVENT_PUT);
      if (rank.index() == 1) put();
    }
    acks.expect(rounds);
    rank.barrier();
    if (rank.index() == 0) {
      put();
      acks.expect(rounds + 1);
      rank.raise(served_flag);
    } else {
      arrivals.expect(PTL_EVENT_PUT);
      compute_until_served(rank, 0);
    }
    rank.barrier();
  });
}

class EndingLoopTest : public testing::TestWithParam<InterfaceKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, EndingLoopTest,
                         testing::Values(matching_physical, nonmatching_logical),
                         [](const auto& info) { return info.param.name(); });

// No other thread polls. A program repeats a call that ends the use of an object while the call is
// refused. That call alone makes progress, at both ends.
// spec 1.6, 3.7.2, 3.10.4, 3.11.3, 3.12.3, 3.13.6, 3.14.3
TEST_P(EndingLoopTest, EndsOverANetworkThoughNothingElsePolls) {
  const RunOptions options{.environment = {{"PTL_PROGRESS", "caller"}, {"PTL_TRANSPORT", "udp"}}};
  run_ranks(2, options, [](Rank& rank) {
    constexpr ptl_pt_index_t short_index = pt_index + 1;
    constexpr int refused_flag = served_flag + 1;
    const Interface interface(rank, GetParam());
    const ptl_handle_ni_t ni = interface.handle();
    std::vector<std::byte> memory(4u << 20u);
    EventQueue events(ni);
    Counter arrived(ni);
    ptl_size_t arrivals = 0;
    // Repeats the call while it is refused; returns the number of refusals.
    const auto repeat = [&](int refusal, const std::function<int()>& call) {
      const auto give_up = Clock::now() + wait_deadline;
      uint64_t refusals = 0;
      int code = PTL_OK;
      while ((code = call()) == refusal) {
        if (++refusals == 1) rank.raise(refused_flag, rank.flag(rank.index(), refused_flag) + 1);
        if (Clock::now() > give_up) rank.fail("the call is refused for ever");
      }
      EXPECT_EQ(code, PTL_OK);
      return refusals;
    };
    const auto put_from = [&](const Descriptor& descriptor, std::size_t bytes,
                              ptl_pt_index_t index) {
      must(PtlPut(descriptor.handle(), 0, bytes, PTL_NO_ACK_REQ, interface.address(1), index, 0, 0,
                  nullptr, 0));
    };
    ptl_pt_index_t given = 0;
    if (rank.index() == 1) {
      must(PtlPTAlloc(ni, 0, PTL_EQ_NONE, short_index, &given));
      interface.append(short_index, {.start = memory.data(),
                                     .length = 8,
                                     .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                                     .counter = arrived.handle()});
    }
    rank.barrier();
    if (rank.index() == 0) {  // first contact
      const Descriptor descriptor(ni, memory, 0, events.handle());
      for (int i = 0; i < 3; ++i) put_from(descriptor, 8, short_index);
      repeat(PTL_IN_USE, [&] { return PtlMDRelease(descriptor.handle()); });
    } else {
      arrived.expect(arrivals += 3);
    }
    for (const unsigned once : {0u, static_cast<unsigned>(PTL_ME_USE_ONCE)}) {
      ptl_handle_any_t entry = PTL_INVALID_HANDLE;
      if (rank.index() == 1) {
        must(PtlPTAlloc(ni, 0, events.handle(), pt_index, &given));
        entry = interface.append(
            pt_index,
            {.start = memory.data(), .length = memory.size(), .options = PTL_ME_OP_PUT | once});
      }
      rank.barrier();
      if (rank.index() == 0) {
        const Descriptor descriptor(ni, memory, 0, events.handle());
        const uint64_t refused = rank.flag(1, refused_flag);
        put_from(descriptor, memory.size(), pt_index);
        put_from(descriptor, 8, short_index);
        // The target has matched the long message and waits for its data.
        rank.await(1, refused_flag, refused + 1);
        EXPECT_NE(repeat(PTL_IN_USE, [&] { return PtlMDRelease(descriptor.handle()); }), 0u);
      } else {
        arrived.expect(arrivals += 1);
        if (once == 0) {
          EXPECT_NE(repeat(PTL_IN_USE, [&] { return interface.unlink(entry); }), 0u);
          must(PtlPTFree(ni, pt_index));
        } else {
          EXPECT_NE(repeat(PTL_PT_IN_USE, [&] { return PtlPTFree(ni, pt_index); }), 0u);
        }
      }
      rank.barrier();
    }
    // These calls are never refused: operations in progress continue without the objects.
    events.free();
    arrived.free();
    rank.barrier();
  });
}

// Calls that test several queues in turn share their polls. An arrived message is found at the
// latest by the second look at its queue, also if no other thread polls.
// spec 3.13.7
TEST(LookingInTurnTest, FindsWhatHasArrivedAtTheSecondLook) {
  run_ranks(
      2, {.environment = {{"PTL_PROGRESS", "caller"}, {"PTL_TRANSPORT", "local,shm"}}},
      [](Rank& rank) {
        constexpr int queues = 3;
        constexpr int messages = 300;
        const Interface interface(rank, matching_physical);
        std::vector<EventQueue> arrivals;
        for (int i = 0; i < queues; ++i) {
          arrivals.emplace_back(interface.handle());
          ptl_pt_index_t index = 0;
          must(PtlPTAlloc(interface.handle(), 0, arrivals.back().handle(), pt_index + i, &index));
          interface.append(index, {.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
        }
        const Descriptor nothing(interface.handle(), std::span<std::byte>{});
        ptl_event_t event;
        rank.barrier();
        for (int i = 0; i < messages; ++i) {
          const int queue = i % queues;
          if (rank.index() == 0)
            must(PtlPut(nothing.handle(), 0, 0, PTL_NO_ACK_REQ, interface.address(1),
                        pt_index + queue, 0, 0, nullptr, 0));
          rank.barrier();  // then the message lies in shared memory
          if (rank.index() == 1) {
            for (int look = 1; look <= i % 4; ++look) {
              const int other = (queue + 1 + look % 2) % queues;
              EXPECT_EQ(PtlEQGet(arrivals[other].handle(), &event), PTL_EQ_EMPTY);
            }
            int code = PtlEQGet(arrivals[queue].handle(), &event);
            if (code == PTL_EQ_EMPTY) code = PtlEQGet(arrivals[queue].handle(), &event);
            ASSERT_EQ(code, PTL_OK) << "message " << i;
            EXPECT_EQ(event.type, PTL_EVENT_PUT);
          }
          rank.barrier();
        }
      });
}

}  // namespace
}  // namespace lintel::test

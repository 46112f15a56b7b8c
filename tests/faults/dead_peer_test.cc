// Peers that die: outstanding operations end as undeliverable, other peers are not affected, and a
// successor can connect.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/rdma.h"
#include "support/text.h"
#include "support/waiting_thread.h"

namespace lintel::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr ptl_pt_index_t pt_index = 4;

// The death of a peer must be reported within seconds.
const Milliseconds soon{8000 * slowdown * machine_slowdown()};

class DeadPeerTest : public testing::TestWithParam<InterfaceKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, DeadPeerTest, testing::ValuesIn(all_interface_kinds),
                         [](const auto& info) { return info.param.name(); });

void accept_everything(const Interface& interface, std::span<std::byte> memory,
                       ptl_handle_eq_t events = PTL_EQ_NONE) {
  interface.allocate(pt_index, events);
  interface.append(pt_index,
                   {.start = memory.data(),
                    .length = memory.size(),
                    .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
}

// The end of the next operation: its acknowledgment, its reply, or a send that failed locally. No
// acknowledgment follows such a send (3.13.3).
ptl_event_t next_end(const EventQueue& events) {
  for (;;) {
    const ptl_event_t event = events.next();
    if (event.type == PTL_EVENT_SEND && event.ni_fail_type == PTL_NI_OK) continue;
    EXPECT_TRUE(event.type == PTL_EVENT_ACK || event.type == PTL_EVENT_REPLY ||
                event.type == PTL_EVENT_SEND)
        << describe(event);
    return event;
  }
}

// Waits for the end of this many operations; returns how many were undeliverable.
uint64_t collect(const EventQueue& events, uint64_t wanted) {
  uint64_t failed = 0;
  for (uint64_t i = 0; i < wanted; ++i) {
    const ptl_event_t event = next_end(events);
    if (event.ni_fail_type == PTL_NI_OK) continue;
    EXPECT_EQ(fail_name(event.ni_fail_type), "PTL_NI_UNDELIVERABLE");
    ++failed;
  }
  return failed;
}

const RunOptions long_run{.environment = {{"PTL_PEER_TIMEOUT_MS", "2000"}},
                          .deadline = 2 * test_deadline};

// spec 3.13.3, 1.7
TEST_P(DeadPeerTest, OperationsToAKilledProcessEndAndOthersGoOn) {
  run_ranks(3, long_run, [&](Rank& rank) {
    std::vector<std::byte> memory(1u << 20u);
    const Interface interface(rank, GetParam());
    accept_everything(interface, memory);
    const EventQueue events(interface.handle(), 8192);
    const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
    const auto put = [&](int to, ptl_size_t length) {
      must(PtlPut(descriptor.handle(), 0, length, PTL_ACK_REQ, interface.address(to), pt_index, 0,
                  0, nullptr, 0));
    };
    const auto get = [&](int from, ptl_size_t length) {
      must(
          PtlGet(descriptor.handle(), 0, length, interface.address(from), pt_index, 0, 0, nullptr));
    };
    rank.barrier();
    if (rank.index() == 2) {
      std::this_thread::sleep_for(test_deadline);  // to be killed
      return;
    }
    if (rank.index() == 0) {
      put(2, 8);  // makes the connection
      EXPECT_EQ(collect(events, 1), 0u);
      for (int i = 0; i < 200; ++i) {
        put(2, i % 10 == 0 ? memory.size() : 64);
        get(2, i % 10 == 0 ? memory.size() : 64);
        put(1, 64);
      }
      rank.kill(2);
      const auto start = Clock::now();
      for (int i = 0; i < 50; ++i) {
        put(2, 64);
        get(2, 64);
      }
      const uint64_t failed = collect(events, 3 * 200 + 2 * 50);
      EXPECT_GE(failed, 50u) << "most operations after the death must fail";
      EXPECT_LT(Clock::now() - start, soon);
      // Messages to the other survivor still arrive, and further messages to the dead peer fail as
      // well.
      for (int i = 0; i < 100; ++i) put(1, 1000);
      get(1, memory.size());
      EXPECT_EQ(collect(events, 101), 0u);
      put(2, 8);
      get(2, 8);
      EXPECT_EQ(collect(events, 2), 2u);
    }
    rank.barrier();
  });
}

// spec 3.13.3
TEST_P(DeadPeerTest, ItsMessagesStopAndItsMemoryIsNoLongerTouched) {
  run_ranks(2, long_run, [&](Rank& rank) {
    std::vector<std::byte> memory(1u << 22u);
    const Interface interface(rank, GetParam());
    const EventQueue events(interface.handle(), 4096);
    accept_everything(interface, memory, events.handle());
    rank.barrier();
    if (rank.index() == 1) {
      // Sends until it is killed.
      const Counter sent(interface.handle());
      const Descriptor descriptor(interface.handle(), memory, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE,
                                  sent.handle());
      for (ptl_size_t i = 0;; ++i) {
        must(PtlPut(descriptor.handle(), 0, i % 3 == 0 ? memory.size() : 100, PTL_CT_ACK_REQ,
                    interface.address(0), pt_index, 0, 0, nullptr, 0));
        ptl_ct_event_t value{};
        must(PtlCTWait(sent.handle(), i < 4 ? 0 : i - 4, &value));
      }
    }
    for (int i = 0; i < 50; ++i) events.next();
    rank.kill(1);
    const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
    // This put ends when the death has been detected; operations in progress may still end after
    // it.
    must(PtlPut(descriptor.handle(), 0, 8, PTL_ACK_REQ, interface.address(1), pt_index, 0, 0,
                nullptr, 0));
    const auto next_own = [&] {
      for (;;) {
        const ptl_event_t event = events.next();
        if (event.type != PTL_EVENT_PUT) return event;
      }
    };
    ptl_event_t end = next_own();
    if (end.type == PTL_EVENT_SEND && end.ni_fail_type == PTL_NI_OK) end = next_own();
    EXPECT_EQ(fail_name(end.ni_fail_type), "PTL_NI_UNDELIVERABLE") << describe(end);
    must(PtlGet(descriptor.handle(), 0, 1000, interface.address(0), pt_index, 0, 2000, nullptr));
    std::set<ptl_event_kind_t> seen;
    while (seen.size() < 2) {
      const ptl_event_t event = next_own();
      EXPECT_EQ(fail_name(event.ni_fail_type), "PTL_NI_OK") << describe(event);
      seen.insert(event.type);
    }
    EXPECT_EQ(seen, (std::set<ptl_event_kind_t>{PTL_EVENT_GET, PTL_EVENT_REPLY}));
    ptl_event_t last{};
    unsigned which = 0;
    const ptl_handle_eq_t queue = events.handle();
    while (PtlEQPoll(&queue, 1, 30, &last, &which) == PTL_OK) continue;
  });
}

// spec 3.13.3, 4.1
TEST_P(DeadPeerTest, AWaitingProcessLearnsOfItWithoutSendingAnything) {
  run_ranks(2, long_run, [&](Rank& rank) {
    std::vector<std::byte> memory(64);
    const Interface interface(rank, GetParam());
    const EventQueue events(interface.handle());
    rank.barrier();
    if (rank.index() == 1) {
      // A stopped process does not answer, so the get below stays outstanding.
      rank.publish(0, getpid());
      rank.raise(0);
      raise(SIGSTOP);
      return;
    }
    rank.await(1, 0);
    const auto other = rank.published<pid_t>(1, 0);
    rank.await_condition("waiting until the other rank has stopped",
                         [&] { return is_stopped(other); });
    const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
    std::thread killer = start_thread([&rank, waiting = gettid()] {
      rank.await_condition("waiting until the other thread sleeps",
                           [&] { return is_asleep(waiting); });
      rank.kill(1);
    });
    must(PtlGet(descriptor.handle(), 0, 8, interface.address(1), pt_index, 0, 0, nullptr));
    ptl_event_t event{};
    must(PtlEQWait(events.handle(), &event));
    EXPECT_EQ(event_name(event.type), "PTL_EVENT_REPLY");
    EXPECT_EQ(fail_name(event.ni_fail_type), "PTL_NI_UNDELIVERABLE");
    killer.join();
  });
}

// spec 3.6.2, 3.13.3
TEST_P(DeadPeerTest, ASuccessorUnderTheSamePidTakesItsPlace) {
  run_ranks(3, long_run, [&](Rank& rank) {
    const ptl_pid_t pid = rank.reserved_pid(3);
    std::vector<std::byte> memory(4096);
    constexpr int opened = 0;
    if (rank.index() == 2) take_rdma_device(1);  // to have the address of rank 1
    rank.initialise();
    const auto own_pid = rank.index() == 0 ? ptl_pid_t{PTL_PID_ANY} : pid;
    if (rank.index() == 2) rank.await(0, 1);  // rank 1 is dead
    Interface interface(GetParam(), {.pid = own_pid});
    ptl_process_t id{};
    must(PtlGetPhysId(interface.handle(), &id));
    rank.publish(2, id);
    rank.raise(opened);
    // Rank 0 of the map is the sender; rank 1 is the process that currently has the pid.
    const auto set_map = [&](int peer) {
      if (!GetParam().logical) return;
      const ptl_process_t map[] = {rank.published<ptl_process_t>(0, 2),
                                   rank.published<ptl_process_t>(peer, 2)};
      must(PtlSetMap(interface.handle(), 2, map));
    };
    if (rank.index() != 0) {
      rank.await(0, opened);
      set_map(rank.index());
      const EventQueue events(interface.handle());
      accept_everything(interface, memory, events.handle());
      rank.raise(2);
      if (rank.index() == 1) {
        std::this_thread::sleep_for(test_deadline);  // to be killed
        return;
      }
      EXPECT_EQ(events.expect(PTL_EVENT_PUT).mlength, 4096u);
      expect_pattern(memory, 5);
      rank.await(0, 3);
      return;
    }
    rank.await(1, 2);
    set_map(1);
    ptl_process_t target = rank.published<ptl_process_t>(1, 2);
    if (GetParam().logical) target.rank = 1;
    const EventQueue events(interface.handle());
    const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
    fill(memory, 5);
    const auto put = [&] {
      must(PtlPut(descriptor.handle(), 0, 4096, PTL_ACK_REQ, target, pt_index, 0, 0, nullptr, 0));
      return next_end(events).ni_fail_type;
    };
    EXPECT_EQ(put(), PTL_NI_OK);
    rank.kill(1);
    EXPECT_EQ(fail_name(put()), "PTL_NI_UNDELIVERABLE");
    rank.raise(1);
    rank.await(2, 2);
    EXPECT_EQ(fail_name(put()), "PTL_NI_OK");
    rank.raise(3);
  });
}

// spec 3.13.3, 3.15.2
TEST_P(DeadPeerTest, AProcessThatNeverExistedIsUndeliverable) {
  run_ranks(1, long_run, [&](Rank& rank) {
    std::vector<std::byte> memory(64);
    Interface interface(rank, GetParam());
    ptl_process_t nobody = interface.physical_id(0);
    nobody.phys.pid = rank.reserved_pid(20);
    ptl_process_t target = nobody;
    if (GetParam().logical) {
      const ptl_process_t map[] = {interface.physical_id(0), nobody};
      must(PtlSetMap(interface.handle(), 2, map));
      target.rank = 1;
    }
    const EventQueue events(interface.handle());
    const Counter counter(interface.handle());
    const Descriptor descriptor(interface.handle(), memory,
                                PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, events.handle(),
                                counter.handle());
    testing::internal::CaptureStderr();
    const auto start = Clock::now();
    must(PtlPut(descriptor.handle(), 0, 8, PTL_ACK_REQ, target, pt_index, 0, 0, tag(1), 0));
    must(PtlGet(descriptor.handle(), 0, 8, target, pt_index, 0, 0, tag(2)));
    uintptr_t ended = 0;
    for (int i = 0; i < 2; ++i) {
      const ptl_event_t event = next_end(events);
      EXPECT_EQ(fail_name(event.ni_fail_type), "PTL_NI_UNDELIVERABLE");
      ended += tag_of(event.user_ptr);
    }
    EXPECT_EQ(ended, 1u + 2u);
    EXPECT_LT(Clock::now() - start, soon);
    rank.await_condition("waiting for failures to be counted",
                         [&] { return counter.value().failure >= 2; });
    EXPECT_EQ(counter.value().success, 0u);
    // The message must not say that a peer has gone if it has never answered.
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(said.find("no transport reaches") != std::string::npos ||
                said.find("nobody answers at") != std::string::npos)
        << said;
    EXPECT_EQ(said.find("is gone"), std::string::npos) << said;
  });
}

// spec 3.13.3, 3.15.2
TEST_P(DeadPeerTest, AddressesThatCannotBeAreUndeliverableOrRefused) {
  run_ranks(1, long_run, [&](Rank& rank) {
    std::vector<std::byte> memory(64);
    Interface interface(rank, GetParam());
    const ptl_process_t own = interface.physical_id(0);
    std::vector<ptl_process_t> map(6, own);
    map[0].phys.nid += 1;
    map[1].phys.pid = PTL_PID_MAX;
    map[2].phys.pid = PTL_PID_ANY;
    map[3].phys.nid = PTL_NID_ANY;
    map[4].phys = {0, 0};
    if (GetParam().logical) must(PtlSetMap(interface.handle(), map.size(), map.data()));
    const EventQueue events(interface.handle());
    const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
    for (ptl_rank_t i = 0; i < 5; ++i) {
      ptl_process_t target = map[i];
      if (GetParam().logical) target.rank = i;
      const int code =
          PtlPut(descriptor.handle(), 0, 8, PTL_ACK_REQ, target, pt_index, 0, 0, nullptr, 0);
      if (code == PTL_ARG_INVALID) continue;
      must(code);
      EXPECT_EQ(fail_name(next_end(events).ni_fail_type), "PTL_NI_UNDELIVERABLE") << i;
    }
  });
}

// spec 3.13.3
TEST_P(DeadPeerTest, AProcessThatClosedItsInterfaceIsUndeliverable) {
  run_ranks(2, long_run, [&](Rank& rank) {
    std::vector<std::byte> memory(4096);
    Interface interface(rank, GetParam());
    accept_everything(interface, memory);
    rank.barrier();
    if (rank.index() == 1) {
      rank.await(0, 0);
      interface.close();
      rank.finalise();
      rank.raise(0);
      rank.await(0, 1);
      return;
    }
    const EventQueue events(interface.handle());
    const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
    const auto put = [&] {
      must(PtlPut(descriptor.handle(), 0, 64, PTL_ACK_REQ, interface.address(1), pt_index, 0, 0,
                  nullptr, 0));
      return next_end(events).ni_fail_type;
    };
    EXPECT_EQ(put(), PTL_NI_OK);
    rank.raise(0);
    rank.await(1, 0);
    EXPECT_EQ(fail_name(put()), "PTL_NI_UNDELIVERABLE");
    rank.raise(1);
  });
}

}  // namespace
}  // namespace lintel::test

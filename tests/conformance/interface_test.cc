// PtlNIInit and PtlNIFini: the four logical interfaces, reference counts, pids, options.
#include "support/interface.h"

#include <array>

#include <gtest/gtest.h>

#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

int open(unsigned options, ptl_pid_t pid, ptl_handle_ni_t* handle,
         const ptl_ni_limits_t* desired = nullptr, ptl_ni_limits_t* actual = nullptr,
         ptl_interface_t iface = PTL_IFACE_DEFAULT) {
  return PtlNIInit(iface, options, pid, desired, actual, handle);
}

// spec 3.6, 3.9, 2.1
TEST(InterfaceTest, FourLogicalInterfacesShareNidAndPid) {
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    std::vector<Interface> interfaces;
    for (const InterfaceKind kind : all_interface_kinds)
      interfaces.emplace_back(kind, Interface::Settings{});
    ptl_process_t first{};
    must(PtlGetPhysId(interfaces[0].handle(), &first));
    for (const Interface& interface : interfaces) {
      ptl_process_t id{};
      must(PtlGetPhysId(interface.handle(), &id));
      EXPECT_EQ(id.phys.nid, first.phys.nid);
      EXPECT_EQ(id.phys.pid, first.phys.pid);
      for (const Interface& other : interfaces) {
        EXPECT_EQ(PtlHandleIsEqual(interface.handle(), other.handle()) != 0, &interface == &other);
      }
    }
  });
}

// spec 2.1, 3.6
TEST(InterfaceTest, FourLogicalInterfacesReceiveApart) {
  run_ranks(2, [](Rank& rank) {
    constexpr ptl_pt_index_t pt_index = 3;
    rank.initialise();
    std::vector<Interface> interfaces;
    std::vector<EventQueue> events;
    for (const InterfaceKind kind : all_interface_kinds) {
      interfaces.emplace_back(kind, Interface::Settings{});
      interfaces.back().exchange(rank);
      events.emplace_back(interfaces.back().handle());
      ptl_pt_index_t index = 0;
      must(PtlPTAlloc(interfaces.back().handle(), 0, events.back().handle(), pt_index, &index));
      interfaces.back().append(pt_index, {.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
    }
    rank.barrier();
    for (int round = 0; round < 50; ++round) {
      for (std::size_t i = 0; i < interfaces.size(); ++i) {
        const Descriptor nothing(interfaces[i].handle(), std::span<std::byte>{});
        for (int to = 0; to < 2; ++to) {
          must(PtlPut(nothing.handle(), 0, 0, PTL_NO_ACK_REQ, interfaces[i].address(to), pt_index,
                      0, 0, nullptr, i));
        }
      }
      for (std::size_t i = 0; i < interfaces.size(); ++i) {
        for (int from = 0; from < 2; ++from) EXPECT_EQ(events[i].expect(PTL_EVENT_PUT).hdr_data, i);
      }
    }
    rank.barrier();
  });
}

// spec 4.2.2, 3.13.3
TEST(InterfaceTest, MessagesToALogicalInterfaceThatIsNotOpenFail) {
  run_ranks(2, [](Rank& rank) {
    const Interface interface(rank, matching_physical);  // open at both ends
    if (rank.index() == 0) {
      const Interface unopened(nonmatching_physical, {});
      const EventQueue events(unopened.handle());
      std::array<std::byte, 8> memory{};
      const Descriptor descriptor(unopened.handle(), memory, PTL_MD_EVENT_SEND_DISABLE,
                                  events.handle());
      must(PtlPut(descriptor.handle(), 0, 8, PTL_ACK_REQ, interface.address(1), 3, 0, 0, nullptr,
                  0));
      must(PtlGet(descriptor.handle(), 0, 8, interface.address(1), 3, 0, 0, nullptr));
      for (int i = 0; i < 2; ++i) {
        const ptl_ni_fail_t result = events.next().ni_fail_type;
        EXPECT_TRUE(result == PTL_NI_DROPPED || result == PTL_NI_UNDELIVERABLE)
            << fail_name(result);
      }
    }
    rank.barrier();
  });
}

// spec 3.6, 3.6.3
TEST(InterfaceTest, LogicalInterfacesCloseIndependently) {
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    std::vector<Interface> interfaces;
    for (const InterfaceKind kind : all_interface_kinds)
      interfaces.emplace_back(kind, Interface::Settings{});
    for (Interface& interface : interfaces) interface.exchange(rank);
    for (std::size_t i = 0; i < interfaces.size(); ++i) {
      const ptl_handle_ni_t handle = interfaces[i].handle();
      interfaces[i].close();
      ptl_uid_t uid = 0;
      EXPECT_EQ(PTL_ARG_INVALID, PtlGetUid(handle, &uid));
      for (std::size_t other = i + 1; other < interfaces.size(); ++other) {
        must(PtlGetUid(interfaces[other].handle(), &uid));
        const Counter counter(interfaces[other].handle());
        counter.add(1);
        counter.expect(1);
      }
    }
  });
}

// spec 3.6.2, 3.6.3
TEST(InterfaceTest, IsReferenceCountedPerLogicalInterface) {
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    ptl_ni_limits_t desired{};
    desired.max_cts = 64;
    ptl_ni_limits_t first_limits{};
    ptl_handle_ni_t first = PTL_INVALID_HANDLE;
    must(open(matching_physical.options(), PTL_PID_ANY, &first, &desired, &first_limits));
    ptl_process_t id{};
    must(PtlGetPhysId(first, &id));

    // A second library in this process: other desired limits, another pid, the same interface.
    desired.max_cts = 128;
    ptl_ni_limits_t second_limits{};
    ptl_handle_ni_t second = PTL_INVALID_HANDLE;
    must(open(matching_physical.options(), (id.phys.pid + 1) % 1000, &second, &desired,
              &second_limits));
    EXPECT_TRUE(PtlHandleIsEqual(first, second));
    EXPECT_EQ(second_limits.max_cts, first_limits.max_cts);
    EXPECT_EQ(second_limits.max_msg_size, first_limits.max_msg_size);
    EXPECT_EQ(second_limits.features, first_limits.features);
    ptl_process_t second_id{};
    must(PtlGetPhysId(second, &second_id));
    EXPECT_EQ(second_id.phys.pid, id.phys.pid);
    // Even an impossible pid is ignored.
    ptl_handle_ni_t third = PTL_INVALID_HANDLE;
    must(open(matching_physical.options(), PTL_PID_MAX + 1, &third));
    EXPECT_TRUE(PtlHandleIsEqual(first, third));
    must(PtlNIFini(third));

    const Counter counter(first);
    must(PtlNIFini(second));
    counter.add(1);
    counter.expect(1);
    must(PtlNIFini(first));
    ptl_ct_event_t value{};
    EXPECT_EQ(PTL_ARG_INVALID, PtlCTGet(counter.handle(), &value));
    EXPECT_EQ(PTL_ARG_INVALID, PtlNIFini(first));
  });
}

// spec 3.6.3
TEST(InterfaceTest, CanBeOpenedAgainAfterItWasClosed) {
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    std::vector<ptl_handle_any_t> stale;
    for (int i = 0; i < 20; ++i) {
      Interface interface(matching_physical, {});
      interface.exchange(rank);
      const EventQueue events(interface.handle());
      interface.allocate(3, events.handle());
      std::array<std::byte, 8> memory{};
      interface.append(3, {.start = memory.data(),
                           .length = 8,
                           .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
      const Descriptor descriptor(interface.handle(), memory, 0, events.handle());
      must(PtlPut(descriptor.handle(), 0, 8, PTL_ACK_REQ, interface.address(0), 3, 0, 0, nullptr,
                  0));
      events.expect_all({PTL_EVENT_PUT, PTL_EVENT_SEND, PTL_EVENT_ACK});
      for (const ptl_handle_any_t handle : stale) {
        ptl_handle_ni_t owner = PTL_INVALID_HANDLE;
        EXPECT_EQ(PTL_ARG_INVALID, PtlNIHandle(handle, &owner));
      }
      stale.insert(stale.end(), {events.handle(), descriptor.handle()});
    }
  });
}

// spec 3.6.2, 3.9
TEST(InterfaceTest, ARequestedPidIsGiven) {
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    const ptl_pid_t wanted = rank.reserved_pid(0);
    const Interface interface(matching_physical, {.pid = wanted});
    ptl_process_t id{};
    must(PtlGetPhysId(interface.handle(), &id));
    EXPECT_EQ(id.phys.pid, wanted);
    must(PtlGetId(interface.handle(), &id));
    EXPECT_EQ(id.phys.pid, wanted);
  });
}

// spec 3.6.2, 3.9
TEST(InterfaceTest, PidsOfProcessesAreDistinct) {
  run_ranks(6, [](Rank& rank) {
    const Interface interface(rank, matching_physical);
    for (int other = 0; other < rank.count(); ++other) {
      EXPECT_EQ(interface.physical_id(other).phys.nid,
                interface.physical_id(rank.index()).phys.nid);
      if (other != rank.index()) {
        EXPECT_NE(interface.physical_id(other).phys.pid,
                  interface.physical_id(rank.index()).phys.pid);
      }
    }
  });
}

// spec 3.6.2
TEST(InterfaceTest, APidOfAnotherProcessIsInUse) {
  run_ranks(2, [](Rank& rank) {
    rank.initialise();
    const ptl_pid_t wanted = rank.reserved_pid(1);
    if (rank.index() == 0) {
      const Interface interface(matching_physical, {.pid = wanted});
      rank.barrier();
      rank.barrier();
    } else {
      rank.barrier();
      ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
      EXPECT_EQ(PTL_PID_IN_USE, open(matching_physical.options(), wanted, &handle));
      EXPECT_EQ(PTL_PID_IN_USE, open(nonmatching_logical.options(), wanted, &handle));
      must(open(matching_physical.options(), PTL_PID_ANY, &handle));
      ptl_process_t id{};
      must(PtlGetPhysId(handle, &id));
      EXPECT_NE(id.phys.pid, wanted);
      rank.barrier();
    }
    rank.barrier();
  });
}

// spec 3.6.2, 3.6.3
TEST(InterfaceTest, APidIsFreeAgainAfterItsProcessHasClosed) {
  run_ranks(2, [](Rank& rank) {
    rank.initialise();
    const ptl_pid_t wanted = rank.reserved_pid(2);
    for (int turn = 0; turn < 6; ++turn) {
      if (turn % 2 == rank.index()) {
        const Interface interface(matching_physical, {.pid = wanted});
        ptl_process_t id{};
        must(PtlGetPhysId(interface.handle(), &id));
        EXPECT_EQ(id.phys.pid, wanted);
      }
      rank.barrier();
    }
  });
}

// spec 3.6.2
TEST(InterfaceTest, OptionsMustNameOneOfEachPair) {
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
    for (unsigned options = 0; options < 32; ++options) {
      const bool one_matching =
          ((options & PTL_NI_MATCHING) != 0) != ((options & PTL_NI_NO_MATCHING) != 0);
      const bool one_addressing =
          ((options & PTL_NI_LOGICAL) != 0) != ((options & PTL_NI_PHYSICAL) != 0);
      const int code = open(options, PTL_PID_ANY, &handle);
      EXPECT_EQ(code == PTL_OK, one_matching && one_addressing && options < 16) << options;
      if (code == PTL_OK) {
        must(PtlNIFini(handle));
      } else {
        EXPECT_EQ(code, PTL_ARG_INVALID);
      }
    }
  });
}

// spec 3.6.2, 3.3.5
TEST(InterfaceTest, ImpossiblePidsAndInterfacesAreRefused) {
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
    EXPECT_EQ(PTL_ARG_INVALID, open(matching_physical.options(), PTL_PID_MAX, &handle));
    EXPECT_EQ(PTL_ARG_INVALID, open(matching_physical.options(), PTL_PID_MAX + 1, &handle));
    EXPECT_EQ(PTL_ARG_INVALID, open(matching_physical.options(), PTL_PID_ANY - 1, &handle));
    EXPECT_EQ(PTL_ARG_INVALID,
              open(matching_physical.options(), PTL_PID_ANY, &handle, nullptr, nullptr, 12345));
    EXPECT_EQ(PTL_ARG_INVALID, open(matching_physical.options(), PTL_PID_ANY, nullptr));
  });
}

// spec 3.6.5, 3.3.2
TEST(InterfaceTest, EveryObjectKnowsItsInterface) {
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    std::vector<Interface> interfaces;
    for (const InterfaceKind kind : all_interface_kinds)
      interfaces.emplace_back(kind, Interface::Settings{});
    for (Interface& interface : interfaces) {
      if (interface.kind().logical) interface.exchange(rank);
      const EventQueue events(interface.handle());
      const Counter counter(interface.handle());
      const Descriptor descriptor(interface.handle(), std::span<std::byte>{});
      const ptl_pt_index_t index = interface.allocate(PTL_PT_ANY);
      const ptl_handle_any_t priority = interface.append(index, {});
      const ptl_handle_any_t overflow = interface.append(index, {}, PTL_OVERFLOW_LIST);
      for (const ptl_handle_any_t handle : {interface.handle(), events.handle(), counter.handle(),
                                            descriptor.handle(), priority, overflow}) {
        ptl_handle_ni_t owner = PTL_INVALID_HANDLE;
        must(PtlNIHandle(handle, &owner));
        EXPECT_TRUE(PtlHandleIsEqual(owner, interface.handle()));
      }
    }
  });
}

// spec 3.18.1, 3.3.2
TEST(InterfaceTest, HandlesCompareByObject) {
  run_ranks(1, [](Rank& rank) {
    const Interface interface(rank, matching_physical);
    std::vector<ptl_handle_any_t> handles{PTL_INVALID_HANDLE, PTL_EQ_NONE, PTL_CT_NONE,
                                          interface.handle()};
    for (int i = 0; i < 3; ++i) {
      handles.push_back(Counter(interface.handle()).handle());
      handles.push_back(EventQueue(interface.handle()).handle());
      handles.push_back(Descriptor(interface.handle(), std::span<std::byte>{}).handle());
    }
    for (std::size_t i = 0; i < handles.size(); ++i) {
      for (std::size_t j = 0; j < handles.size(); ++j)
        EXPECT_EQ(PtlHandleIsEqual(handles[i], handles[j]) != 0, i == j) << i << " " << j;
    }
  });
}

// spec 3.8, 3.8.1
TEST(InterfaceTest, TheUsageIdIsTheSameOnAllInterfacesOfAProcess) {
  run_ranks(2, [](Rank& rank) {
    rank.initialise();
    ptl_uid_t first = 0;
    for (const InterfaceKind kind : all_interface_kinds) {
      Interface interface(kind, {});
      interface.exchange(rank);
      ptl_uid_t uid = PTL_UID_ANY;
      must(PtlGetUid(interface.handle(), &uid));
      EXPECT_NE(uid, PTL_UID_ANY);
      if (kind.matching && !kind.logical) first = uid;
      EXPECT_EQ(uid, first);
    }
  });
}

}  // namespace
}  // namespace lintel::test

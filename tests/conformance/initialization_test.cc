// PtlInit, PtlFini, forked children, and calls of every function before initialisation.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

// Used in processes with threads. The thread sanitizer confuses the child's threads with its
// parent's. With the address sanitizer, locks of the allocator that the parent's threads held stay
// locked in the child.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool children_may_start_threads = false;
#else
constexpr bool children_may_start_threads = true;
#endif
constexpr const char* no_threads_in_children =
    "the sanitizer does not support threads in the child of a process with threads";

// spec 3.5, 3.5.1, 3.5.2
TEST(InitializationTest, IsReferenceCounted) {
  run_ranks(1, [](Rank&) {
    for (int i = 0; i < 3; ++i) must(PtlInit());
    {
      const Interface interface(matching_physical, {});
      PtlFini();
      PtlFini();
      const Counter counter(interface.handle());  // still usable
      counter.add(1);
      counter.expect(1);
    }
    PtlFini();
    ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
    EXPECT_EQ(PTL_NO_INIT, PtlNIInit(PTL_IFACE_DEFAULT, matching_physical.options(), PTL_PID_ANY,
                                     nullptr, nullptr, &handle));
  });
}

// spec 3.5.1
TEST(InitializationTest, CannotBeRepeatedAfterTheEnd) {
  run_ranks(1, [](Rank&) {
    must(PtlInit());
    PtlFini();
    EXPECT_EQ(PTL_FAIL, PtlInit());
  });
}

// spec 3.5.2
TEST(InitializationTest, FinishingTooOftenDoesNoHarm) {
  run_ranks(1, [](Rank&) {
    PtlFini();  // never initialised
    must(PtlInit());
    PtlFini();
    PtlFini();
  });
}

// spec 3.5.2, 3.6.3
TEST(InitializationTest, TheLastFiniReleasesInterfacesThatAreStillOpen) {
  run_ranks(1, [](Rank& rank) {
    must(PtlInit());
    ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
    must(PtlNIInit(PTL_IFACE_DEFAULT, matching_physical.options(), PTL_PID_ANY, nullptr, nullptr,
                   &handle));
    ptl_pt_index_t index = 0;
    const EventQueue events(handle);
    must(PtlPTAlloc(handle, PTL_PT_FLOWCTRL, events.handle(), PTL_PT_ANY, &index));
    static std::array<std::byte, 64> memory;
    ptl_me_t entry{};
    entry.start = memory.data();
    entry.length = memory.size();
    entry.ct_handle = PTL_CT_NONE;
    entry.uid = PTL_UID_ANY;
    ptl_handle_me_t entry_handle = PTL_INVALID_HANDLE;
    must(PtlMEAppend(handle, index, &entry, PTL_PRIORITY_LIST, nullptr, &entry_handle));
    PtlFini();
    EXPECT_EQ(PTL_NO_INIT, PtlNIFini(handle));
    static_cast<void>(rank);
  });
}

// spec 3.5.1, 2.9
TEST(InitializationTest, MayHappenInAnyThreadAtAnyTime) {
  run_ranks(1, [](Rank&) {
    constexpr int threads = 8;
    std::vector<std::thread> starters;
    std::array<ptl_handle_ni_t, threads> handles{};
    for (std::size_t t = 0; t < threads; ++t) {
      starters.push_back(start_thread([&, t] {
        must(PtlInit());
        must(PtlNIInit(PTL_IFACE_DEFAULT, matching_physical.options(), PTL_PID_ANY, nullptr,
                       nullptr, &handles[t]));
      }));
    }
    for (std::thread& starter : starters) starter.join();
    for (const ptl_handle_ni_t handle : handles) {
      EXPECT_TRUE(PtlHandleIsEqual(handle, handles[0]));
      must(PtlNIFini(handle));
      PtlFini();
    }
    EXPECT_EQ(PTL_FAIL, PtlInit());
  });
}

using NamedCalls = std::vector<std::pair<std::string, int>>;

// The results of every function that can return PTL_NO_INIT (spec table 3-7), for these handles.
NamedCalls call_everything(ptl_handle_any_t handle) {
  static std::array<std::byte, 64> memory;
  ptl_handle_any_t out = PTL_INVALID_HANDLE;
  ptl_ni_limits_t limits{};
  ptl_sr_value_t status = 0;
  ptl_process_t id{};
  ptl_size_t size = 0;
  ptl_pt_index_t index = 0;
  ptl_uid_t uid = 0;
  unsigned which = 0;
  ptl_event_t event{};
  ptl_ct_event_t count{};
  const ptl_size_t test = 0;
  const ptl_md_t md{memory.data(), memory.size(), 0, PTL_EQ_NONE, PTL_CT_NONE};
  const ptl_le_t le{memory.data(), memory.size(), PTL_CT_NONE, PTL_UID_ANY, 0};
  ptl_me_t me{};
  me.ct_handle = PTL_CT_NONE;
  const std::byte* operand = memory.data();
  NamedCalls calls;
  const auto note = [&](const char* name, int code) { calls.emplace_back(name, code); };
  note("PtlNIInit", PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY,
                              nullptr, &limits, &out));
  note("PtlNIFini", PtlNIFini(handle));
  note("PtlNIStatus", PtlNIStatus(handle, PTL_SR_DROP_COUNT, &status));
  note("PtlNIHandle", PtlNIHandle(handle, &out));
  note("PtlSetMap", PtlSetMap(handle, 1, &id));
  note("PtlGetMap", PtlGetMap(handle, 1, &id, &size));
  note("PtlPTAlloc", PtlPTAlloc(handle, 0, PTL_EQ_NONE, PTL_PT_ANY, &index));
  note("PtlPTFree", PtlPTFree(handle, 0));
  note("PtlPTDisable", PtlPTDisable(handle, 0));
  note("PtlPTEnable", PtlPTEnable(handle, 0));
  note("PtlGetUid", PtlGetUid(handle, &uid));
  note("PtlGetId", PtlGetId(handle, &id));
  note("PtlGetPhysId", PtlGetPhysId(handle, &id));
  note("PtlMDBind", PtlMDBind(handle, &md, &out));
  note("PtlMDRelease", PtlMDRelease(handle));
  note("PtlLEAppend", PtlLEAppend(handle, 0, &le, PTL_PRIORITY_LIST, nullptr, &out));
  note("PtlLEUnlink", PtlLEUnlink(handle));
  note("PtlLESearch", PtlLESearch(handle, 0, &le, PTL_SEARCH_ONLY, nullptr));
  note("PtlMEAppend", PtlMEAppend(handle, 0, &me, PTL_PRIORITY_LIST, nullptr, &out));
  note("PtlMEUnlink", PtlMEUnlink(handle));
  note("PtlMESearch", PtlMESearch(handle, 0, &me, PTL_SEARCH_ONLY, nullptr));
  note("PtlEQAlloc", PtlEQAlloc(handle, 10, &out));
  note("PtlEQFree", PtlEQFree(handle));
  note("PtlEQGet", PtlEQGet(handle, &event));
  note("PtlEQWait", PtlEQWait(handle, &event));
  note("PtlEQPoll", PtlEQPoll(&handle, 1, 0, &event, &which));
  note("PtlCTAlloc", PtlCTAlloc(handle, &out));
  note("PtlCTFree", PtlCTFree(handle));
  note("PtlCTCancelTriggered", PtlCTCancelTriggered(handle));
  note("PtlCTGet", PtlCTGet(handle, &count));
  note("PtlCTWait", PtlCTWait(handle, 0, &count));
  note("PtlCTPoll", PtlCTPoll(&handle, &test, 1, 0, &count, &which));
  note("PtlCTSet", PtlCTSet(handle, {1, 0}));
  note("PtlCTInc", PtlCTInc(handle, {1, 0}));
  note("PtlPut", PtlPut(handle, 0, 8, PTL_ACK_REQ, id, 0, 0, 0, nullptr, 0));
  note("PtlGet", PtlGet(handle, 0, 8, id, 0, 0, 0, nullptr));
  note("PtlAtomic",
       PtlAtomic(handle, 0, 8, PTL_ACK_REQ, id, 0, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T));
  note("PtlFetchAtomic",
       PtlFetchAtomic(handle, 0, handle, 8, 8, id, 0, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T));
  note("PtlSwap",
       PtlSwap(handle, 0, handle, 8, 8, id, 0, 0, 0, nullptr, 0, operand, PTL_SWAP, PTL_INT64_T));
  note("PtlAtomicSync", PtlAtomicSync());
  note("PtlTriggeredPut",
       PtlTriggeredPut(handle, 0, 8, PTL_ACK_REQ, id, 0, 0, 0, nullptr, 0, handle, 1));
  note("PtlTriggeredGet", PtlTriggeredGet(handle, 0, 8, id, 0, 0, 0, nullptr, handle, 1));
  note("PtlTriggeredAtomic", PtlTriggeredAtomic(handle, 0, 8, PTL_ACK_REQ, id, 0, 0, 0, nullptr, 0,
                                                PTL_SUM, PTL_INT64_T, handle, 1));
  note("PtlTriggeredFetchAtomic",
       PtlTriggeredFetchAtomic(handle, 0, handle, 8, 8, id, 0, 0, 0, nullptr, 0, PTL_SUM,
                               PTL_INT64_T, handle, 1));
  note("PtlTriggeredSwap", PtlTriggeredSwap(handle, 0, handle, 8, 8, id, 0, 0, 0, nullptr, 0,
                                            operand, PTL_SWAP, PTL_INT64_T, handle, 1));
  note("PtlTriggeredCTInc", PtlTriggeredCTInc(handle, {1, 0}, handle, 1));
  note("PtlTriggeredCTSet", PtlTriggeredCTSet(handle, {1, 0}, handle, 1));
  note("PtlStartBundle", PtlStartBundle(handle));
  note("PtlEndBundle", PtlEndBundle(handle));
  return calls;
}

void expect_all(const NamedCalls& calls, int code) {
  for (const auto& [name, returned] : calls)
    EXPECT_EQ(return_code_name(returned), return_code_name(code)) << name;
}

// spec 3.5.1, 3.4, 3.19
TEST(InitializationTest, EveryFunctionSaysNoInitBefore) {
  run_ranks(1, [](Rank&) {
    expect_all(call_everything(PTL_INVALID_HANDLE), PTL_NO_INIT);
    expect_all(call_everything(0), PTL_NO_INIT);
    EXPECT_TRUE(PtlHandleIsEqual(PTL_INVALID_HANDLE, PTL_INVALID_HANDLE));
    PtlAbort();
    must(PtlInit());
    PtlFini();
  });
}

// spec 3.5.2, 3.4, 3.19
TEST(InitializationTest, EveryFunctionSaysNoInitAfterwards) {
  run_ranks(1, [](Rank&) {
    must(PtlInit());
    ptl_handle_ni_t handle = PTL_INVALID_HANDLE;
    must(PtlNIInit(PTL_IFACE_DEFAULT, matching_physical.options(), PTL_PID_ANY, nullptr, nullptr,
                   &handle));
    must(PtlNIFini(handle));
    PtlFini();
    expect_all(call_everything(handle), PTL_NO_INIT);
  });
}

// spec 3.5
TEST(InitializationTest, AForkedChildMayStartAfresh) {
  if (!children_may_start_threads) GTEST_SKIP() << no_threads_in_children;
  run_ranks(1, [](Rank& rank) {
    const Interface interface(rank, matching_physical);
    const Counter counter(interface.handle());
    counter.add(3);
    const ptl_handle_any_t inherited = counter.handle();
    const ptl_process_t parent = interface.physical_id(0);
    for (int i = 0; i < 3; ++i) {
      const int status = run_child([&] {
        must(PtlInit());
        const Interface own(matching_physical, {});
        ptl_process_t id{};
        must(PtlGetPhysId(own.handle(), &id));
        EXPECT_EQ(id.phys.nid, parent.phys.nid);
        EXPECT_NE(id.phys.pid, parent.phys.pid);
        // The child inherits no initialisation.
        ptl_ct_event_t value{};
        EXPECT_EQ(PTL_ARG_INVALID, PtlCTGet(inherited, &value));
        const Counter fresh(own.handle());
        fresh.add(1);
        fresh.expect(1);
        PtlFini();
      });
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
      counter.expect(3);
    }
  });
}

// Such a child runs no handler of pthread_atfork(), and has the parent's objects in its memory.
// spec 3.5
TEST(InitializationTest, AChildOfCloneReachesNothingOfItsParent) {
  run_ranks(1, [](Rank& rank) {
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    const Counter counter(interface.handle());
    counter.add(3);
    std::array<std::byte, 64> memory{};
    const Descriptor descriptor(interface.handle(), memory, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE,
                                counter.handle());
    const pid_t child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) {
      // No text of a failure: the allocator may be locked. The number tells which check it was.
      int failed = 0;
      int number = 0;
      const auto expect = [&](int code, int wanted) {
        ++number;
        if (code != wanted && failed == 0) failed = number;
      };
      ptl_ct_event_t value{};
      ptl_event_t event{};
      ptl_process_t id{};
      expect(PtlCTInc(counter.handle(), {1, 0}), PTL_NO_INIT);
      expect(PtlCTGet(counter.handle(), &value), PTL_NO_INIT);
      expect(PtlCTWait(counter.handle(), 1, &value), PTL_NO_INIT);
      expect(PtlEQGet(events.handle(), &event), PTL_NO_INIT);
      expect(PtlEQWait(events.handle(), &event), PTL_NO_INIT);
      expect(PtlGetPhysId(interface.handle(), &id), PTL_NO_INIT);
      expect(
          PtlPut(descriptor.handle(), 0, 8, PTL_ACK_REQ, interface.address(0), 0, 0, 0, nullptr, 0),
          PTL_NO_INIT);
      expect(PtlMDRelease(descriptor.handle()), PTL_NO_INIT);
      expect(PtlNIFini(interface.handle()), PTL_NO_INIT);
      PtlAbort();
      PtlFini();
      expect(PtlInit(), PTL_FAIL);
      _exit(failed);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    // The parent goes on.
    counter.expect(3);
    counter.add(1);
    counter.expect(4);
    const int forked = run_child([&] {
      ptl_ct_event_t value{};
      EXPECT_EQ(return_code_name(PtlCTGet(counter.handle(), &value)), "PTL_NO_INIT");
    });
    EXPECT_TRUE(WIFEXITED(forked) && WEXITSTATUS(forked) == 0) << forked;
  });
}

// spec 3.5
TEST(InitializationTest, AForkedChildMayStartWhenItsParentHasFinished) {
  run_ranks(1, [](Rank&) {
    must(PtlInit());
    PtlFini();
    const int status = run_child([] {
      must(PtlInit());
      const Interface own(matching_physical, {});
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  });
}

// spec 3.5.2
TEST(InitializationTest, AProcessMayExitWithoutFinishing) {
  run_ranks(1, [](Rank& rank) {
    rank.initialise();
    const int status = run_child([] {
      must(PtlInit());
      static Interface open(matching_physical, {});
      const Counter counter(open.handle());
      counter.add(1);
      std::exit(0);
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  });
}

// spec 3.5
TEST(InitializationTest, ParentAndForkedChildTalkToEachOther) {
  if (!children_may_start_threads) GTEST_SKIP() << no_threads_in_children;
  run_ranks(1, [](Rank& rank) {
    const Interface interface(rank, matching_physical);
    const EventQueue events(interface.handle());
    const ptl_pt_index_t index = interface.allocate(3, events.handle());
    std::array<std::byte, 32> memory{};
    interface.append(index, {.start = memory.data(),
                             .length = memory.size(),
                             .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
    const ptl_process_t parent = interface.physical_id(0);
    const int status = run_child([&] {
      must(PtlInit());
      const Interface own(matching_physical, {});
      const EventQueue sent(own.handle());
      std::array<std::byte, 5> greeting{};
      std::memcpy(greeting.data(), "hello", 5);
      const Descriptor descriptor(own.handle(), greeting, 0, sent.handle());
      must(PtlPut(descriptor.handle(), 0, 5, PTL_ACK_REQ, parent, 3, 0, 0, nullptr, 0));
      sent.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK});
      PtlFini();
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    events.expect(PTL_EVENT_PUT);
    EXPECT_EQ(std::memcmp(memory.data(), "hello", 5), 0);
  });
}

}  // namespace
}  // namespace lintel::test

// Portal table entries: allocation, release, disabling and enabling.
#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

// Reads memory that a message is being written to. The data race is intended.
__attribute__((no_sanitize("thread"), noinline)) std::byte look_at_arriving(
    const volatile std::byte& byte) {
  return byte;
}

class PortalTableTest : public testing::TestWithParam<InterfaceKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, PortalTableTest, testing::ValuesIn(all_interface_kinds),
                         [](const auto& info) { return info.param.name(); });

// spec 3.7.1
TEST_P(PortalTableTest, GivesTheIndexRequestedOnce) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    const auto last = static_cast<ptl_pt_index_t>(interface.limits().max_pt_index);
    for (const ptl_pt_index_t wanted : {ptl_pt_index_t{0}, ptl_pt_index_t{17}, last}) {
      ptl_pt_index_t index = 9999;
      must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, wanted, &index));
      EXPECT_EQ(index, wanted);
      EXPECT_EQ(PTL_PT_IN_USE, PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, wanted, &index));
      must(PtlPTFree(interface.handle(), wanted));
      must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, wanted, &index));
    }
    ptl_pt_index_t index = 0;
    EXPECT_EQ(PTL_ARG_INVALID, PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, last + 1, &index));
  });
}

// spec 3.7.1, 3.6, 3.6.1
TEST_P(PortalTableTest, GivesAtLeastTwoHundredAndFiftyEntriesAndThenIsFull) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    const auto entries = static_cast<std::size_t>(interface.limits().max_pt_index) + 1;
    EXPECT_GE(entries, 250u);
    std::set<ptl_pt_index_t> given;
    for (std::size_t i = 0; i < entries; ++i) {
      ptl_pt_index_t index = 0;
      must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, PTL_PT_ANY, &index));
      EXPECT_LT(index, entries);
      EXPECT_TRUE(given.insert(index).second) << index << " twice";
    }
    ptl_pt_index_t index = 0;
    EXPECT_EQ(PTL_PT_FULL, PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, PTL_PT_ANY, &index));
    must(PtlPTFree(interface.handle(), 123));
    must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, PTL_PT_ANY, &index));
    EXPECT_EQ(index, 123u);
  });
}

// spec 3.7.1
TEST_P(PortalTableTest, FlowControlNeedsAnEventQueue) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    ptl_pt_index_t index = 0;
    EXPECT_EQ(PTL_PT_EQ_NEEDED,
              PtlPTAlloc(interface.handle(), PTL_PT_FLOWCTRL, PTL_EQ_NONE, PTL_PT_ANY, &index));
    const EventQueue events(interface.handle());
    must(PtlPTAlloc(interface.handle(), PTL_PT_FLOWCTRL, events.handle(), PTL_PT_ANY, &index));
  });
}

// spec 3.7.2
TEST_P(PortalTableTest, AnEntryWithListEntriesIsNotFreed) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, PTL_PT_ANY, &index));
    for (const ptl_list_t list : {PTL_PRIORITY_LIST, PTL_OVERFLOW_LIST}) {
      const ptl_handle_any_t entry = interface.append(index, {}, list);
      EXPECT_EQ(PTL_PT_IN_USE, PtlPTFree(interface.handle(), index));
      must(interface.unlink(entry));
    }
    must(PtlPTFree(interface.handle(), index));
    EXPECT_EQ(PTL_ARG_INVALID, PtlPTFree(interface.handle(), index));
    ptl_handle_any_t entry = PTL_INVALID_HANDLE;
    EXPECT_EQ(PTL_ARG_INVALID, interface.try_append(index, {}, PTL_PRIORITY_LIST, nullptr, &entry));
  });
}

// spec 3.7, 3.6
TEST_P(PortalTableTest, LogicalInterfacesHaveTablesOfTheirOwn) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    InterfaceKind kind = GetParam();
    kind.matching = !kind.matching;
    Interface other(kind, {});
    other.exchange(rank);
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(interface.handle(), 0, PTL_EQ_NONE, 4, &index));
    must(PtlPTAlloc(other.handle(), 0, PTL_EQ_NONE, 4, &index));
  });
}

class PortalDisableTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, PortalDisableTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 3.7.3, 3.7.4, 3.13.3
TEST_P(PortalDisableTest, ADisabledPortalRefusesUntilEnabled) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET);
      must(PtlPTDisable(pair.ni(), default_pt_index));
      must(PtlPTDisable(pair.ni(), default_pt_index));  // already so
      target.events.expect_silence();                   // no PTL_EVENT_PT_DISABLED
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 3);
      for (const Operation operation : all_operations)
        perform(initiator, operation, {.length = 8}, PTL_NI_PT_DISABLED);
    });
    pair.on_target([&] {
      target.events.expect_silence();
      expect_bytes(target.memory, std::byte{0});
      must(PtlPTEnable(pair.ni(), default_pt_index));
      must(PtlPTEnable(pair.ni(), default_pt_index));
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] { target.events.expect(PTL_EVENT_PUT); });
  });
}

// spec 3.7.1, 3.7.4
TEST_P(PortalDisableTest, APortalMayBeAllocatedDisabled) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.pt_options = PTL_PT_ALLOC_DISABLED | PTL_PT_FLOWCTRL});
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      target.append(PTL_ME_OP_PUT);
      target.events.expect_silence();
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}, PTL_NI_PT_DISABLED); });
    pair.on_target([&] {
      target.events.expect_silence();
      must(PtlPTEnable(pair.ni(), default_pt_index));
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
  });
}

// spec 3.7.3, 2.8
TEST_P(PortalDisableTest, LocalOperationsContinueOnADisabledPortal) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      must(PtlPTDisable(pair.ni(), default_pt_index));
      EntrySpec spec = target.entry(0);
      spec.options = PTL_ME_OP_PUT;
      const ptl_handle_any_t entry = target.append(spec);
      target.events.expect_all({PTL_EVENT_PUT_OVERFLOW, PTL_EVENT_LINK});
      must(pair.interface().unlink(entry));
      must(pair.interface().search(default_pt_index, {}, PTL_SEARCH_ONLY, nullptr));
      target.events.expect(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
    });
  });
}

// spec 3.7.2
TEST_P(PortalDisableTest, APortalWithUnexpectedHeadersIsNotFreed) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT | PTL_ME_USE_ONCE); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect(PTL_EVENT_AUTO_UNLINK);
      EXPECT_EQ(PTL_PT_IN_USE, PtlPTFree(pair.ni(), default_pt_index));
      must(pair.interface().search(default_pt_index, {.options = PTL_ME_USE_ONCE},
                                   PTL_SEARCH_DELETE, nullptr));
      target.events.expect_all({PTL_EVENT_PUT_OVERFLOW, PTL_EVENT_AUTO_FREE});
      must(PtlPTFree(pair.ni(), default_pt_index));
    });
  });
}

// spec 3.7.3
TEST_P(PortalDisableTest, CountsAreCompleteWhenDisableReturns) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr ptl_size_t puts = 300;
    TargetSide target(pair);
    InitiatorSide initiator(
        pair, {.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE, .events = 2 * puts});
    pair.on_target([&] {
      target.append(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM,
                    {.counter = target.counter.handle()});
    });
    if (pair.is_initiator())
      for (ptl_size_t i = 0; i < puts; ++i) initiator.put({.length = 8, .ack = PTL_CT_ACK_REQ});
    if (pair.is_target()) {
      ptl_ct_event_t first{};
      must(PtlCTWait(target.counter.handle(), 1, &first));
      must(PtlPTDisable(pair.ni(), default_pt_index));
      pair.rank().publish(1, target.counter.value().success);
    }
    pair.barrier();
    const auto counted = pair.rank().published<ptl_size_t>(pair.target_rank(), 1);
    pair.on_initiator([&] { initiator.source.counter.expect(counted, puts - counted); });
    pair.on_target([&] { EXPECT_EQ(target.counter.value().success, counted); });
  });
}

// spec 3.7.3
TEST_P(PortalDisableTest, DisableReturnsAfterTheLastMessageAndItsEvent) {
  run_pair(GetParam(), [](Pair& pair) {
    // Long enough that the transfer takes some milliseconds.
    const ptl_size_t bytes = (machine_slowdown() > 1 ? 4u : 16u) << 20u;
    constexpr std::size_t watched = 1u << 16u;
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    const std::span<std::byte> tail =
        pair.is_target() ? target.memory.last(watched) : std::span<std::byte>{};
    for (uint8_t round = 1; round <= 4; ++round) {
      pair.on_initiator([&] {
        std::ranges::fill(initiator.source.memory, std::byte{round});
        for (int i = 0; i < 2; ++i) initiator.put({.length = bytes, .hdr_data = round});
      });
      pair.on_target([&] {
        // The first byte has arrived, and most of the data have not.
        pair.rank().await_condition("waiting for the first byte", [&] {
          return look_at_arriving(target.memory.front()) == std::byte{round};
        });
        must(PtlPTDisable(pair.ni(), default_pt_index));
        const std::vector<std::byte> before(tail.begin(), tail.end());
        const std::size_t events = target.events.drain();
        EXPECT_GE(events, 1u) << "the message that had begun has ended, with its event";
        expect_bytes(tail, std::byte{round});
        std::this_thread::sleep_for(Milliseconds(5));
        EXPECT_TRUE(std::ranges::equal(before, tail)) << "memory changed afterwards";
        EXPECT_EQ(target.events.drain(), 0u)
            << "an event was posted after PtlPTDisable had returned";
      });
      pair.on_initiator([&] {
        for (int i = 0; i < 4; ++i) initiator.source.events.next();
      });
      pair.on_target([&] {
        target.events.expect_empty();
        must(PtlPTEnable(pair.ni(), default_pt_index));
      });
    }
  });
}

}  // namespace
}  // namespace lintel::test

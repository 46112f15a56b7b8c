// Missing outputs, bad indices, impossible options and ranges.
#include <array>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class BadArgumentsTest : public testing::TestWithParam<InterfaceKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, BadArgumentsTest, testing::ValuesIn(all_interface_kinds),
                         [](const auto& info) { return info.param.name(); });

constexpr unsigned unknown_option = 1u << 30u;

// Runs `body` in one process that sends to itself.
void with_self(InterfaceKind kind, const std::function<void(Pair&, InitiatorSide&)>& body) {
  run_pair({Path::self, kind}, [&](Pair& pair) {
    const TargetSide target(pair);
    InitiatorSide initiator(pair, {.bytes = 64});
    body(pair, initiator);
    initiator.source.events.expect_empty();
    initiator.result.events.expect_empty();
    EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 0) << "something was sent";
  });
}

// spec 3.4
TEST_P(BadArgumentsTest, OutputsMustBeThere) {
  with_self(GetParam(), [](Pair& pair, InitiatorSide& initiator) {
    const ptl_handle_ni_t ni = pair.ni();
    const ptl_md_t md{nullptr, 0, 0, PTL_EQ_NONE, PTL_CT_NONE};
    EXPECT_EQ(PTL_ARG_INVALID, PtlNIStatus(ni, PTL_SR_DROP_COUNT, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlNIHandle(ni, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlGetUid(ni, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlGetId(ni, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlGetPhysId(ni, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlMDBind(ni, &md, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlEQAlloc(ni, 4, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlCTAlloc(ni, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, pair.interface().try_append(default_pt_index, {}, PTL_PRIORITY_LIST,
                                                           nullptr, nullptr));
    const ptl_handle_eq_t queue = initiator.source.events.handle();
    const ptl_handle_ct_t counter = initiator.source.counter.handle();
    const ptl_size_t test = 0;
    ptl_event_t event{};
    ptl_ct_event_t value{};
    unsigned which = 0;
    EXPECT_EQ(PTL_ARG_INVALID, PtlEQGet(queue, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlEQWait(queue, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlEQPoll(&queue, 1, 0, nullptr, &which));
    EXPECT_EQ(PTL_ARG_INVALID, PtlEQPoll(&queue, 1, 0, &event, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlEQPoll(nullptr, 1, 0, &event, &which));
    EXPECT_EQ(PTL_ARG_INVALID, PtlCTGet(counter, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlCTWait(counter, 0, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlCTPoll(&counter, &test, 1, 0, nullptr, &which));
    EXPECT_EQ(PTL_ARG_INVALID, PtlCTPoll(&counter, &test, 1, 0, &value, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlCTPoll(nullptr, &test, 1, 0, &value, &which));
    EXPECT_EQ(PTL_ARG_INVALID, PtlCTPoll(&counter, nullptr, 1, 0, &value, &which));
  });
}

// spec 3.4
TEST_P(BadArgumentsTest, InputStructuresMustBeThere) {
  with_self(GetParam(), [](Pair& pair, InitiatorSide& initiator) {
    const ptl_handle_ni_t ni = pair.ni();
    ptl_handle_any_t out = PTL_INVALID_HANDLE;
    ptl_size_t size = 0;
    ptl_process_t id{};
    EXPECT_EQ(PTL_ARG_INVALID, PtlMDBind(ni, nullptr, &out));
    EXPECT_EQ(PTL_ARG_INVALID,
              PtlLEAppend(ni, default_pt_index, nullptr, PTL_PRIORITY_LIST, nullptr, &out));
    EXPECT_EQ(PTL_ARG_INVALID,
              PtlMEAppend(ni, default_pt_index, nullptr, PTL_PRIORITY_LIST, nullptr, &out));
    EXPECT_EQ(PTL_ARG_INVALID,
              PtlLESearch(ni, default_pt_index, nullptr, PTL_SEARCH_ONLY, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID,
              PtlMESearch(ni, default_pt_index, nullptr, PTL_SEARCH_ONLY, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlSetMap(ni, 1, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID, PtlGetMap(ni, 1, nullptr, &size));
    EXPECT_EQ(PTL_ARG_INVALID, PtlGetMap(ni, 1, &id, nullptr));
    EXPECT_EQ(PTL_ARG_INVALID,
              PtlSwap(initiator.result.descriptor.handle(), 0, initiator.source.descriptor.handle(),
                      0, 8, pair.target_id(), default_pt_index, 0, 0, nullptr, 0, nullptr,
                      PTL_CSWAP, PTL_INT64_T));
  });
}

// spec 3.6.4, 3.7, 3.4
TEST_P(BadArgumentsTest, IndicesMustExist) {
  with_self(GetParam(), [](Pair& pair, InitiatorSide&) {
    const ptl_handle_ni_t ni = pair.ni();
    ptl_sr_value_t status = 0;
    EXPECT_EQ(PTL_ARG_INVALID, PtlNIStatus(ni, 100'000, &status));
    EXPECT_EQ(PTL_ARG_INVALID, PtlNIStatus(ni, ~0u, &status));
    const auto beyond = static_cast<ptl_pt_index_t>(pair.limits().max_pt_index) + 1;
    for (const ptl_pt_index_t index :
         {ptl_pt_index_t{77}, beyond, ~ptl_pt_index_t{0} - 1, ptl_pt_index_t{PTL_PT_ANY}}) {
      ptl_handle_any_t out = PTL_INVALID_HANDLE;
      EXPECT_EQ(PTL_ARG_INVALID, PtlPTFree(ni, index));
      EXPECT_EQ(PTL_ARG_INVALID, PtlPTDisable(ni, index));
      EXPECT_EQ(PTL_ARG_INVALID, PtlPTEnable(ni, index));
      EXPECT_EQ(PTL_ARG_INVALID,
                pair.interface().try_append(index, {}, PTL_PRIORITY_LIST, nullptr, &out));
      EXPECT_EQ(PTL_ARG_INVALID, pair.interface().search(index, {}, PTL_SEARCH_ONLY, nullptr));
    }
  });
}

// spec 3.4, 3.7.1, 3.10.1, 3.11.1, 3.12.1
TEST_P(BadArgumentsTest, UnknownOptionsAndConstantsAreRefused) {
  with_self(GetParam(), [](Pair& pair, InitiatorSide& initiator) {
    const ptl_handle_ni_t ni = pair.ni();
    ptl_handle_any_t out = PTL_INVALID_HANDLE;
    ptl_pt_index_t index = 0;
    EXPECT_EQ(PTL_ARG_INVALID, PtlPTAlloc(ni, unknown_option, PTL_EQ_NONE, PTL_PT_ANY, &index));
    const ptl_md_t md{nullptr, 0, unknown_option, PTL_EQ_NONE, PTL_CT_NONE};
    EXPECT_EQ(PTL_ARG_INVALID, PtlMDBind(ni, &md, &out));
    const Interface& interface = pair.interface();
    EXPECT_EQ(PTL_ARG_INVALID, interface.try_append(default_pt_index, {.options = unknown_option},
                                                    PTL_PRIORITY_LIST, nullptr, &out));
    EXPECT_EQ(PTL_ARG_INVALID, interface.try_append(default_pt_index, {},
                                                    static_cast<ptl_list_t>(2), nullptr, &out));
    EXPECT_EQ(PTL_ARG_INVALID,
              interface.search(default_pt_index, {}, static_cast<ptl_search_op_t>(2), nullptr));
    EXPECT_EQ(PTL_ARG_INVALID,
              PtlPut(initiator.source.descriptor.handle(), 0, 8, static_cast<ptl_ack_req_t>(4),
                     pair.target_id(), default_pt_index, 0, 0, nullptr, 0));
  });
}

// spec 3.10.3, 3.11.2, 3.12.2, 3.7.1
TEST_P(BadArgumentsTest, QueuesAndCountersMustExistOnTheSameInterface) {
  with_self(GetParam(), [](Pair& pair, InitiatorSide& initiator) {
    InterfaceKind other_kind = pair.interface().kind();
    other_kind.matching = !other_kind.matching;
    Interface other(other_kind, {});
    other.exchange(pair.rank());
    const EventQueue foreign_queue(other.handle());
    const Counter foreign_counter(other.handle());
    const Counter counter(pair.ni());
    Counter freed_counter(pair.ni());
    EventQueue freed_queue(pair.ni());
    const ptl_handle_any_t stale_counter = freed_counter.handle();
    const ptl_handle_any_t stale_queue = freed_queue.handle();
    freed_counter.free();
    freed_queue.free();
    ptl_handle_any_t out = PTL_INVALID_HANDLE;
    ptl_pt_index_t index = 0;
    for (const ptl_handle_any_t queue : {foreign_queue.handle(), stale_queue, counter.handle(),
                                         ptl_handle_any_t{PTL_INVALID_HANDLE}}) {
      const ptl_md_t md{nullptr, 0, 0, queue, PTL_CT_NONE};
      EXPECT_EQ(PTL_ARG_INVALID, PtlMDBind(pair.ni(), &md, &out));
      EXPECT_EQ(PTL_ARG_INVALID, PtlPTAlloc(pair.ni(), 0, queue, PTL_PT_ANY, &index));
    }
    for (const ptl_handle_any_t count :
         {foreign_counter.handle(), stale_counter, initiator.source.events.handle(),
          ptl_handle_any_t{PTL_INVALID_HANDLE}}) {
      const ptl_md_t md{nullptr, 0, 0, PTL_EQ_NONE, count};
      EXPECT_EQ(PTL_ARG_INVALID, PtlMDBind(pair.ni(), &md, &out));
      EXPECT_EQ(PTL_ARG_INVALID, pair.interface().try_append(default_pt_index, {.counter = count},
                                                             PTL_PRIORITY_LIST, nullptr, &out));
      EXPECT_EQ(PTL_ARG_INVALID, pair.interface().search(default_pt_index, {.counter = count},
                                                         PTL_SEARCH_ONLY, nullptr));
    }
  });
}

// spec 3.15.6, 3.15.7
TEST_P(BadArgumentsTest, DescriptorsOfAFetchMustShareAnInterface) {
  with_self(GetParam(), [](Pair& pair, InitiatorSide& initiator) {
    InterfaceKind other_kind = pair.interface().kind();
    other_kind.matching = !other_kind.matching;
    Interface other(other_kind, {});
    other.exchange(pair.rank());
    const Descriptor foreign(other.handle(), initiator.result.memory);
    const ptl_handle_md_t own = initiator.source.descriptor.handle();
    for (const auto& [get, put] : {std::pair{foreign.handle(), own}, {own, foreign.handle()}}) {
      EXPECT_EQ(PTL_ARG_INVALID,
                PtlFetchAtomic(get, 0, put, 0, 8, pair.target_id(), default_pt_index, 0, 0, nullptr,
                               0, PTL_SUM, PTL_INT64_T));
      EXPECT_EQ(PTL_ARG_INVALID, PtlSwap(get, 0, put, 0, 8, pair.target_id(), default_pt_index, 0,
                                         0, nullptr, 0, nullptr, PTL_SWAP, PTL_INT64_T));
    }
  });
}

// spec 3.15.2, 3.15.3, 3.15.5, 3.15.6, 3.15.7
TEST_P(BadArgumentsTest, RangesMustLieWithinTheDescriptor) {
  with_self(GetParam(), [](Pair& pair, InitiatorSide& initiator) {
    const ptl_handle_md_t md = initiator.source.descriptor.handle();  // 64 bytes
    const ptl_handle_md_t result = initiator.result.descriptor.handle();
    const ptl_process_t target = pair.target_id();
    struct Range {
      ptl_size_t offset;
      ptl_size_t length;
    };
    for (const auto& [offset, length] :
         {Range{0, 65}, Range{60, 8}, Range{64, 8}, Range{65, 0}, Range{PTL_SIZE_MAX, 8},
          Range{PTL_SIZE_MAX - 7, 8}, Range{PTL_SIZE_MAX - 3, 16}}) {
      SCOPED_TRACE(std::to_string(offset) + " + " + std::to_string(length));
      EXPECT_EQ(PTL_ARG_INVALID, PtlPut(md, offset, length, PTL_NO_ACK_REQ, target,
                                        default_pt_index, 0, 0, nullptr, 0));
      EXPECT_EQ(PTL_ARG_INVALID,
                PtlGet(md, offset, length, target, default_pt_index, 0, 0, nullptr));
      EXPECT_EQ(PTL_ARG_INVALID,
                PtlAtomic(md, offset, length, PTL_NO_ACK_REQ, target, default_pt_index, 0, 0,
                          nullptr, 0, PTL_SUM, PTL_INT8_T));
      EXPECT_EQ(PTL_ARG_INVALID,
                PtlFetchAtomic(result, 0, md, offset, length, target, default_pt_index, 0, 0,
                               nullptr, 0, PTL_SUM, PTL_INT8_T));
      EXPECT_EQ(PTL_ARG_INVALID,
                PtlFetchAtomic(result, offset, md, 0, length, target, default_pt_index, 0, 0,
                               nullptr, 0, PTL_SUM, PTL_INT8_T));
      EXPECT_EQ(PTL_ARG_INVALID, PtlSwap(result, offset, md, 0, length, target, default_pt_index, 0,
                                         0, nullptr, 0, nullptr, PTL_SWAP, PTL_INT8_T));
    }
  });
}

// spec 3.16.1, 3.16.2, 3.16.3
TEST_P(BadArgumentsTest, TriggeredOperationsCheckWhenPosted) {
  with_self(GetParam(), [](Pair& pair, InitiatorSide& initiator) {
    const ptl_handle_md_t md = initiator.source.descriptor.handle();
    const ptl_handle_ct_t trigger = initiator.result.counter.handle();
    const ptl_process_t target = pair.target_id();
    EXPECT_EQ(PTL_ARG_INVALID, PtlTriggeredPut(md, 0, 65, PTL_NO_ACK_REQ, target, default_pt_index,
                                               0, 0, nullptr, 0, trigger, 1));
    EXPECT_EQ(PTL_ARG_INVALID,
              PtlTriggeredGet(md, 60, 8, target, default_pt_index, 0, 0, nullptr, trigger, 1));
    EXPECT_EQ(PTL_ARG_INVALID,
              PtlTriggeredAtomic(md, 0, 8, PTL_NO_ACK_REQ, target, default_pt_index, 0, 0, nullptr,
                                 0, PTL_BXOR, PTL_DOUBLE, trigger, 1));
    EXPECT_EQ(PTL_ARG_INVALID, PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, target, default_pt_index,
                                               0, 0, nullptr, 0, PTL_CT_NONE, 1));
    initiator.result.counter.add(5);
  });
}

// spec 3.10.1, 3.15.2
TEST_P(BadArgumentsTest, UnreliablePutsCannotBeAcknowledged) {
  with_self(GetParam(), [](Pair& pair, InitiatorSide& initiator) {
    const Descriptor unreliable(pair.ni(), initiator.source.memory, PTL_MD_UNRELIABLE,
                                initiator.source.events.handle());
    for (const ptl_ack_req_t ack : {PTL_ACK_REQ, PTL_CT_ACK_REQ, PTL_OC_ACK_REQ}) {
      EXPECT_EQ(PTL_ARG_INVALID, PtlPut(unreliable.handle(), 0, 8, ack, pair.target_id(),
                                        default_pt_index, 0, 0, nullptr, 0));
    }
  });
}

// spec 3.11, 3.12
TEST_P(BadArgumentsTest, EntriesOfTheOtherKindAreRefused) {
  with_self(GetParam(), [](Pair& pair, InitiatorSide&) {
    const ptl_le_t le{nullptr, 0, PTL_CT_NONE, PTL_UID_ANY, 0};
    ptl_me_t me{};
    me.ct_handle = PTL_CT_NONE;
    ptl_handle_any_t out = PTL_INVALID_HANDLE;
    if (pair.matching()) {
      EXPECT_EQ(PTL_ARG_INVALID,
                PtlLEAppend(pair.ni(), default_pt_index, &le, PTL_PRIORITY_LIST, nullptr, &out));
      EXPECT_EQ(PTL_ARG_INVALID,
                PtlLESearch(pair.ni(), default_pt_index, &le, PTL_SEARCH_ONLY, nullptr));
    } else {
      EXPECT_EQ(PTL_ARG_INVALID,
                PtlMEAppend(pair.ni(), default_pt_index, &me, PTL_PRIORITY_LIST, nullptr, &out));
      EXPECT_EQ(PTL_ARG_INVALID,
                PtlMESearch(pair.ni(), default_pt_index, &me, PTL_SEARCH_ONLY, nullptr));
    }
  });
}

// spec 3.13.5
TEST_P(BadArgumentsTest, AbsurdQueuesAreRefusedWithoutHarm) {
  with_self(GetParam(), [](Pair& pair, InitiatorSide&) {
    for (const ptl_size_t count : {PTL_SIZE_MAX, PTL_SIZE_MAX / 2 + 1, ptl_size_t{1} << 48u}) {
      ptl_handle_eq_t queue = PTL_INVALID_HANDLE;
      const int code = PtlEQAlloc(pair.ni(), count, &queue);
      EXPECT_TRUE(code == PTL_NO_SPACE || code == PTL_ARG_INVALID) << return_code_name(code);
    }
    ptl_handle_eq_t queue = PTL_INVALID_HANDLE;
    if (PtlEQAlloc(pair.ni(), 0, &queue) == PTL_OK) {  // the count is a hint
      ptl_event_t event{};
      EXPECT_EQ(PTL_EQ_EMPTY, PtlEQGet(queue, &event));
      must(PtlEQFree(queue));
    }
  });
}

// spec 3.13.9, 3.14.7
TEST_P(BadArgumentsTest, PollingNothingReturns) {
  with_self(GetParam(), [](Pair&, InitiatorSide&) {
    ptl_event_t event{};
    ptl_ct_event_t value{};
    unsigned which = 0;
    const int events = PtlEQPoll(nullptr, 0, 1, &event, &which);
    EXPECT_TRUE(events == PTL_EQ_EMPTY || events == PTL_ARG_INVALID) << return_code_name(events);
    const int counts = PtlCTPoll(nullptr, nullptr, 0, 1, &value, &which);
    EXPECT_TRUE(counts == PTL_CT_NONE_REACHED || counts == PTL_ARG_INVALID)
        << return_code_name(counts);
  });
}

// spec 3.10.2
TEST_P(BadArgumentsTest, ScatterListsMustBeThere) {
  with_self(GetParam(), [](Pair& pair, InitiatorSide&) {
    ptl_handle_any_t out = PTL_INVALID_HANDLE;
    const ptl_md_t md{nullptr, 3, PTL_IOVEC, PTL_EQ_NONE, PTL_CT_NONE};
    EXPECT_EQ(PTL_ARG_INVALID, PtlMDBind(pair.ni(), &md, &out));
    EXPECT_EQ(PTL_ARG_INVALID,
              pair.interface().try_append(default_pt_index, {.length = 3, .options = PTL_IOVEC},
                                          PTL_PRIORITY_LIST, nullptr, &out));
  });
}

}  // namespace
}  // namespace lintel::test

// PtlStartBundle and PtlEndBundle: no message may be lost, and all are sent by the end of the
// bundle.
#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class BundleTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, BundleTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 3.17, 3.17.1, 3.17.2
TEST_P(BundleTest, EverythingStartedInsideArrives) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr uint64_t count = 400;
    TargetSide target(pair, {.events = 5 * count});
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY |
                                              PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] { target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_OP_GET)); });
    pair.on_initiator([&] {
      must(PtlStartBundle(pair.ni()));
      for (uint64_t i = 0; i < count; ++i) {
        for (const Operation operation : all_operations)
          start(initiator, operation, {.length = 8, .hdr_data = i});
      }
      must(PtlEndBundle(pair.ni()));
      initiator.source.counter.expect(2 * count);
      initiator.result.counter.expect(3 * count);
    });
    pair.on_target([&] {
      for (uint64_t i = 0; i < count; ++i) {
        for (const Operation operation : all_operations)
          target.events.expect(target_event(operation));
      }
    });
  });
}

// spec 3.17.1, 3.17.2
TEST_P(BundleTest, BundlesNestAndAnInnerEndSendsWhatWasDeferred) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    pair.on_target([&] { target.append(target.entry(PTL_ME_OP_PUT)); });
    pair.on_initiator([&] {
      must(PtlStartBundle(pair.ni()));
      must(PtlStartBundle(pair.ni()));
      initiator.put({.length = 8});
      must(PtlEndBundle(pair.ni()));
      initiator.expect_send_and_ack();  // still inside the outer bundle
      initiator.put({.length = 8});
      must(PtlEndBundle(pair.ni()));
      initiator.expect_send_and_ack();
      initiator.put_and_wait({.length = 8});
    });
  });
}

// spec 3.17.1
TEST_P(BundleTest, ConcernsOneInterfaceOnly) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    InterfaceKind other_kind = pair.interface().kind();
    other_kind.matching = !other_kind.matching;
    Interface other(other_kind, {});
    other.exchange(pair.rank());
    pair.on_target([&] { target.append(target.entry(PTL_ME_OP_PUT)); });
    pair.on_initiator([&] {
      must(PtlStartBundle(other.handle()));
      initiator.put_and_wait({.length = 8});
      must(PtlEndBundle(other.handle()));
    });
  });
}

// spec 3.17, 3.16
TEST_P(BundleTest, TriggeredOperationsFireInsideABundle) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    pair.on_target([&] { target.append(target.entry(PTL_ME_OP_PUT)); });
    pair.on_initiator([&] {
      const Counter trigger(pair.ni());
      must(PtlStartBundle(pair.ni()));
      must(PtlTriggeredPut(initiator.source.descriptor.handle(), 0, 8, PTL_ACK_REQ,
                           pair.target_id(), default_pt_index, 0, 0, nullptr, 0, trigger.handle(),
                           1));
      trigger.add(1);
      must(PtlEndBundle(pair.ni()));
      initiator.expect_send_and_ack();
    });
  });
}

}  // namespace
}  // namespace lintel::test

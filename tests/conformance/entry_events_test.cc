// Which full events and which counts a list entry requests.
#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

constexpr unsigned put_and_get = PTL_ME_OP_PUT | PTL_ME_OP_GET;

class EntryEventsTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, EntryEventsTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 3.13.1, 3.11.2, 3.12.2
TEST_P(EntryEventsTest, LinkReportsTheAppend) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    pair.on_target([&] {
      for (const ptl_list_t list : {PTL_PRIORITY_LIST, PTL_OVERFLOW_LIST}) {
        EntrySpec spec = target.entry(PTL_ME_OP_PUT);
        spec.options = PTL_ME_OP_PUT;
        target.append(spec, list, tag(40u + list));
        const ptl_event_t event = target.events.expect(PTL_EVENT_LINK);
        EXPECT_EQ(event.user_ptr, tag(40u + list));
        EXPECT_EQ(event.pt_index, default_pt_index);
        EXPECT_EQ(event.ptl_list, list);
      }
      target.events.expect_empty();
    });
  });
}

// spec 3.11.1, 3.12.1
TEST_P(EntryEventsTest, LinkDisableSuppressesIt) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    pair.on_target([&] {
      target.append({.options = PTL_ME_EVENT_LINK_DISABLE});
      target.append({.options = PTL_ME_EVENT_LINK_DISABLE}, PTL_OVERFLOW_LIST);
      target.events.expect_silence();
    });
  });
}

// spec 3.11.1, 3.12.1
TEST_P(EntryEventsTest, SuccessDisableSuppressesCommunicationEvents) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(put_and_get | PTL_ME_EVENT_SUCCESS_DISABLE); });
    pair.on_initiator([&] {
      for (const Operation operation : all_operations) perform(initiator, operation, {.length = 8});
      initiator.fence();
    });
    pair.on_target([&] { target.events.expect_silence(); });
  });
}

class ListEntryEventsTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, ListEntryEventsTest, testing::ValuesIn(nonmatching_pairs()),
                         pair_name);

// spec 3.11.1, C.3
TEST_P(ListEntryEventsTest, SuccessDisableDoesNotAffectLinkAndUnlink) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      EntrySpec spec = target.entry(0);
      spec.options = PTL_LE_OP_PUT | PTL_LE_USE_ONCE | PTL_LE_EVENT_SUCCESS_DISABLE;
      target.append(spec);
      target.events.expect(PTL_EVENT_LINK);
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_AUTO_UNLINK);
      target.events.expect_silence();
    });
  });
}

// spec 3.11.1, 3.12.1
TEST_P(EntryEventsTest, CommDisableSuppressesCommunicationEvents) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(put_and_get | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM,
                    {.counter = target.counter.handle()});
    });
    pair.on_initiator([&] {
      for (const Operation operation : all_operations) perform(initiator, operation, {.length = 8});
      initiator.fence();
    });
    pair.on_target([&] {
      target.events.expect_silence();
      target.counter.expect_steady(std::size(all_operations));
    });
  });
}

// spec 3.11.1, 3.12.1, 3.13.1
TEST_P(EntryEventsTest, UseOnceReportsTheOperationThenTheUnlink) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    for (const Operation operation : all_operations) {
      SCOPED_TRACE(name_of(operation));
      pair.on_target([&] {
        target.append(target.entry(put_and_get | PTL_ME_USE_ONCE), PTL_PRIORITY_LIST, tag(4));
      });
      pair.on_initiator([&] { perform(initiator, operation, {.length = 8}); });
      pair.on_target([&] {
        EXPECT_EQ(target.events.expect(target_event(operation)).user_ptr, tag(4));
        const ptl_event_t unlink = target.events.expect(PTL_EVENT_AUTO_UNLINK);
        EXPECT_EQ(unlink.user_ptr, tag(4));
        EXPECT_EQ(unlink.pt_index, default_pt_index);
        target.events.expect_silence();
      });
    }
  });
}

// spec 3.11.1, 3.12.1
TEST_P(EntryEventsTest, UnlinkDisableSuppressesTheUnlink) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target(
        [&] { target.append(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect_silence();
    });
  });
}

// spec 3.11.1, 3.12.1, 3.14
TEST_P(EntryEventsTest, CountCommCountsEveryOperation) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(put_and_get | PTL_ME_EVENT_CT_COMM, {.counter = target.counter.handle()});
    });
    ptl_size_t operations = 0;
    for (const Operation operation : all_operations) {
      ++operations;
      pair.on_initiator([&] { perform(initiator, operation, {.length = 8}); });
      pair.on_target([&] {
        target.events.expect(target_event(operation));
        target.counter.expect_steady(operations);
      });
    }
  });
}

// spec 3.11.1, 3.12.1, 3.14
TEST_P(EntryEventsTest, CountersCountNothingUnlessAsked) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(put_and_get, {.counter = target.counter.handle()}); });
    pair.on_initiator([&] {
      for (const Operation operation : all_operations) perform(initiator, operation, {.length = 8});
      initiator.fence();
    });
    pair.on_target([&] { target.counter.expect_steady(0); });
  });
}

// spec 3.11.1, 3.12.1
TEST_P(EntryEventsTest, CountBytesAddsTheManipulatedLength) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.bytes = 100});
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      target.append(put_and_get | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES,
                    {.counter = target.counter.handle()});
    });
    ptl_size_t bytes = 0;
    const auto expect_more = [&](ptl_size_t more) {
      bytes += more;
      pair.on_target([&] { target.counter.expect_steady(bytes); });
    };
    pair.on_initiator([&] { initiator.put_and_wait({.length = 60}); });
    expect_more(60);
    pair.on_initiator([&] { initiator.put_and_wait({.length = 60, .remote_offset = 90}); });
    expect_more(10);
    pair.on_initiator([&] { initiator.get_and_wait({.length = 300}); });
    expect_more(100);
    pair.on_initiator([&] { perform(initiator, Operation::atomic, {.length = 24}); });
    expect_more(24);
    pair.on_initiator([&] { perform(initiator, Operation::fetch_atomic, {.length = 16}); });
    expect_more(16);
    pair.on_initiator([&] { perform(initiator, Operation::swap, {.length = 8}); });
    expect_more(8);
    pair.on_initiator([&] { initiator.put_and_wait({.length = 0}); });
    expect_more(0);
  });
}

// spec 3.11.1, 3.12.1
TEST_P(EntryEventsTest, CountOverflowCountsMatchesInTheUnexpectedList) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append_overflow(PTL_ME_OP_PUT | PTL_ME_EVENT_CT_OVERFLOW,
                             {.counter = target.counter.handle()});
    });
    pair.on_initiator([&] {
      for (int i = 0; i < 3; ++i) initiator.put_and_wait({.length = 8});
    });
    pair.on_target([&] {
      for (int i = 0; i < 3; ++i) target.events.expect(PTL_EVENT_PUT);
      target.counter.expect_steady(0);
      const Counter posted(pair.ni());
      EntrySpec spec = target.entry(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_OVERFLOW);
      spec.counter = posted.handle();
      target.append(spec);
      target.events.expect(PTL_EVENT_PUT_OVERFLOW);
      posted.expect_steady(1);
      const Counter bytes(pair.ni());
      spec.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_CT_BYTES;
      spec.counter = bytes.handle();
      target.append(spec);
      bytes.expect_steady(16);
      posted.expect(1);
      target.counter.expect(0);
    });
  });
}

// spec 3.11.1, 3.12.1
TEST_P(EntryEventsTest, OverDisableSuppressesOverflowEvents) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append_overflow(put_and_get); });
    pair.on_initiator([&] {
      for (const Operation operation : all_operations) perform(initiator, operation, {.length = 8});
    });
    pair.on_target([&] {
      for (const Operation operation : all_operations)
        target.events.expect(target_event(operation));
      target.append(put_and_get | PTL_ME_EVENT_OVER_DISABLE | PTL_ME_EVENT_CT_OVERFLOW,
                    {.counter = target.counter.handle()});
      target.counter.expect_steady(std::size(all_operations));
      target.events.expect_silence();
    });
  });
}

}  // namespace
}  // namespace lintel::test

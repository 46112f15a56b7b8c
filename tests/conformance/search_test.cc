// PtlLESearch and PtlMESearch: both modes, once and persistent, events and counters.
#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class SearchTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, SearchTest, testing::ValuesIn(all_pairs()), pair_name);

// Puts three headers with hdr_data 0, 1, 2 into the unexpected list, without remaining events.
void leave_three_headers(Pair& pair, TargetSide& target, InitiatorSide& initiator) {
  pair.on_target([&] {
    target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST,
                  tag(1));
  });
  pair.on_initiator([&] {
    for (uint64_t i = 0; i < 3; ++i) {
      initiator.put_and_wait({.length = 8 * (i + 1), .remote_offset = 100 * i, .hdr_data = i});
    }
  });
}

const EntrySpec once{.options = PTL_ME_USE_ONCE};
const EntrySpec persistent{};

// spec 3.11.4, 3.12.4, 3.13.1
TEST_P(SearchTest, OnceWithoutDeletingFindsTheFirstAndLeavesIt) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    leave_three_headers(pair, target, initiator);
    pair.on_target([&] {
      for (int repetition = 0; repetition < 2; ++repetition) {
        must(pair.interface().search(default_pt_index, once, PTL_SEARCH_ONLY, tag(7)));
        expect_target_event(pair, target.events.expect(PTL_EVENT_SEARCH),
                            {.type = PTL_EVENT_SEARCH,
                             .start = target.memory.data(),
                             .rlength = 8,
                             .mlength = 8,
                             .remote_offset = 0,
                             .hdr_data = 0,
                             .user_ptr = tag(7),
                             .list = PTL_OVERFLOW_LIST});
        target.events.expect_silence();
      }
    });
  });
}

// spec 3.11.4, 3.12.4
TEST_P(SearchTest, OnceWithDeletingTakesTheHeadersOneByOne) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    leave_three_headers(pair, target, initiator);
    pair.on_target([&] {
      for (uint64_t i = 0; i < 3; ++i) {
        must(pair.interface().search(default_pt_index, once, PTL_SEARCH_DELETE, tag(7)));
        expect_target_event(pair, target.events.expect(PTL_EVENT_PUT_OVERFLOW),
                            {.type = PTL_EVENT_PUT_OVERFLOW,
                             .start = target.memory.data() + 100 * i,
                             .rlength = 8 * (i + 1),
                             .mlength = 8 * (i + 1),
                             .remote_offset = 100 * i,
                             .hdr_data = i,
                             .user_ptr = tag(7),
                             .list = PTL_OVERFLOW_LIST});
        target.events.expect_silence();
      }
      must(pair.interface().search(default_pt_index, once, PTL_SEARCH_DELETE, tag(8)));
      EXPECT_EQ(target.events.expect(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH).user_ptr, tag(8));
    });
  });
}

// spec 3.11.4, 3.12.4, 3.13.1
TEST_P(SearchTest, PersistentReportsEveryMatchAndThenTheEnd) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    leave_three_headers(pair, target, initiator);
    pair.on_target([&] {
      for (const ptl_search_op_t mode : {PTL_SEARCH_ONLY, PTL_SEARCH_DELETE}) {
        must(pair.interface().search(default_pt_index, persistent, mode, tag(9)));
        for (uint64_t i = 0; i < 3; ++i) {
          const ptl_event_t event = target.events.expect(
              mode == PTL_SEARCH_ONLY ? PTL_EVENT_SEARCH : PTL_EVENT_PUT_OVERFLOW);
          EXPECT_EQ(event.hdr_data, i);
          EXPECT_EQ(event.user_ptr, tag(9));
        }
        EXPECT_EQ(target.events.expect(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH).user_ptr, tag(9));
        target.events.expect_silence();
      }
      must(pair.interface().search(default_pt_index, persistent, PTL_SEARCH_ONLY, tag(9)));
      target.events.expect(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
      target.events.expect_silence();
    });
  });
}

// spec 3.11.4, 3.12.4
TEST_P(SearchTest, CountersCountMatchesAndTheEnd) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    leave_three_headers(pair, target, initiator);
    pair.on_target([&] {
      const auto counted = [&](unsigned options, ptl_search_op_t mode) {
        const Counter counter(pair.ni());
        EntrySpec spec{.options = options};
        spec.counter = counter.handle();
        must(pair.interface().search(default_pt_index, spec, mode, nullptr));
        const ptl_ct_event_t value = counter.value();  // a search counts before it returns
        counter.expect_steady(value.success, value.failure);
        return value;
      };
      // The counting options of the entry make no difference.
      constexpr unsigned events = PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW;
      constexpr unsigned bytes = events | PTL_ME_EVENT_CT_BYTES;
      for (const unsigned counting : {0u, events, bytes}) {
        EXPECT_EQ(counted(counting | PTL_ME_USE_ONCE, PTL_SEARCH_ONLY), (ptl_ct_event_t{1, 0}));
        EXPECT_EQ(counted(counting, PTL_SEARCH_ONLY), (ptl_ct_event_t{3, 1}));
      }
      EXPECT_EQ(counted(bytes | PTL_ME_USE_ONCE, PTL_SEARCH_DELETE), (ptl_ct_event_t{1, 0}));
      EXPECT_EQ(counted(0, PTL_SEARCH_DELETE), (ptl_ct_event_t{2, 1}));
      EXPECT_EQ(counted(events | PTL_ME_USE_ONCE, PTL_SEARCH_DELETE), (ptl_ct_event_t{0, 1}));
      EXPECT_EQ(counted(bytes | PTL_ME_USE_ONCE, PTL_SEARCH_ONLY), (ptl_ct_event_t{0, 1}));
      EXPECT_EQ(counted(0, PTL_SEARCH_ONLY), (ptl_ct_event_t{0, 1}));
    });
  });
}

// spec 3.11.4, 3.12.4
TEST_P(SearchTest, WithoutEventsItStillDeletes) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    leave_three_headers(pair, target, initiator);
    pair.on_target([&] {
      const EntrySpec silent{.options = PTL_ME_USE_ONCE | PTL_ME_EVENT_COMM_DISABLE |
                                        PTL_ME_EVENT_OVER_DISABLE};
      must(pair.interface().search(default_pt_index, silent, PTL_SEARCH_DELETE, nullptr));
      target.events.expect_silence();
      must(pair.interface().search(default_pt_index, persistent, PTL_SEARCH_ONLY, nullptr));
      EXPECT_EQ(target.events.expect(PTL_EVENT_SEARCH).hdr_data, 1u);
      EXPECT_EQ(target.events.expect(PTL_EVENT_SEARCH).hdr_data, 2u);
      target.events.expect(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
      const EntrySpec failures_only{.options = PTL_ME_EVENT_SUCCESS_DISABLE};
      must(pair.interface().search(default_pt_index, failures_only, PTL_SEARCH_ONLY, nullptr));
      target.events.expect(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
      target.events.expect_silence();
    });
  });
}

// spec 3.11.4, 3.12.4
TEST_P(SearchTest, ChecksNoPermissionAndTouchesNoStatusRegister) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    leave_three_headers(pair, target, initiator);
    pair.on_target([&] {
      ptl_uid_t own = 0;
      must(PtlGetUid(pair.ni(), &own));
      EntrySpec stranger{.options = PTL_ME_USE_ONCE};
      stranger.uid = own + 1;
      must(pair.interface().search(default_pt_index, stranger, PTL_SEARCH_DELETE, nullptr));
      target.events.expect(PTL_EVENT_PUT_OVERFLOW);
      must(pair.interface().search(default_pt_index, persistent, PTL_SEARCH_DELETE, nullptr));
      for (const ptl_sr_index_t index :
           {PTL_SR_DROP_COUNT, PTL_SR_PERMISSION_VIOLATIONS, PTL_SR_OPERATION_VIOLATIONS})
        EXPECT_EQ(pair.interface().status(index), 0);
    });
  });
}

// spec 3.11.4, 3.12.4
TEST_P(SearchTest, IsNeverLinked) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      EntrySpec spec = target.entry(PTL_ME_OP_PUT);
      must(pair.interface().search(default_pt_index, spec, PTL_SEARCH_ONLY, nullptr));
      target.events.expect(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
    });
    pair.on_initiator([&] {
      initiator.put({.length = 8});
      initiator.fence();
    });
    pair.on_target([&] {
      target.events.expect_empty();
      EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 1);
    });
  });
}

// spec 3.11.4, 3.12.4, 3.13.1
TEST_P(SearchTest, DeletingNamesTheKindOfOperation) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target(
        [&] { target.append_overflow(PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] {
      for (const Operation operation : all_operations) perform(initiator, operation, {.length = 8});
    });
    pair.on_target([&] {
      must(pair.interface().search(default_pt_index, persistent, PTL_SEARCH_DELETE, nullptr));
      for (const Operation operation : all_operations)
        target.events.expect(overflow_event(operation));
      target.events.expect(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
    });
  });
}

// spec 3.11.4, 3.12.4, 3.7.1
TEST_P(SearchTest, WithoutAnEventQueueItStillWorks) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.with_event_queue = false});
    InitiatorSide initiator(pair);
    leave_three_headers(pair, target, initiator);
    pair.on_target([&] {
      EntrySpec spec{.options = PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW};
      spec.counter = target.counter.handle();
      must(pair.interface().search(default_pt_index, spec, PTL_SEARCH_DELETE, nullptr));
      target.counter.expect_steady(3, 1);
    });
  });
}

// spec 2.5, 3.11.4, 3.12.4
TEST_P(SearchTest, CountsAndEventsAreCompleteWhenTheCallReturnsAlsoWhileALongMessageArrives) {
  constexpr std::size_t length = 3 << 20;
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.bytes = length});
    InitiatorSide initiator(pair, {.bytes = length});
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    for (uint32_t round = 1; round <= 4; ++round) {
      if (pair.is_initiator()) {
        fill(initiator.source.memory, round);
        initiator.put({.length = length});
      }
      pair.on_target([&] {
        const ptl_search_op_t mode = round % 2 == 0 ? PTL_SEARCH_ONLY : PTL_SEARCH_DELETE;
        ptl_ct_event_t found{};
        while (found.success == 0 && !testing::Test::HasFailure()) {
          Counter counter(pair.ni());
          EntrySpec spec{.options = 0};
          spec.counter = counter.handle();
          must(pair.interface().search(default_pt_index, spec, mode, nullptr));
          found = counter.value();
          EXPECT_EQ(found.failure, 1u);
          if (found.success != 0)
            target.events.expect(mode == PTL_SEARCH_ONLY ? PTL_EVENT_SEARCH
                                                         : PTL_EVENT_PUT_OVERFLOW);
          target.events.expect(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
          counter.free();
        }
        expect_pattern(target.memory, round);
        if (mode == PTL_SEARCH_ONLY) {
          must(pair.interface().search(default_pt_index, once, PTL_SEARCH_DELETE, nullptr));
          target.events.expect(PTL_EVENT_PUT_OVERFLOW);
        }
        target.events.expect_empty();
      });
      pair.on_initiator([&] { initiator.expect_send_and_ack(); });
    }
  });
}

class MatchingSearchTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, MatchingSearchTest, testing::ValuesIn(matching_pairs()), pair_name);

// spec 3.12.4
TEST_P(MatchingSearchTest, FindsOnlyWhatMatches) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append_overflow(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE,
                             {.ignore_bits = ~ptl_match_bits_t{0}});
    });
    pair.on_initiator([&] {
      for (uint64_t i = 0; i < 8; ++i)
        initiator.put_and_wait({.length = 8, .match_bits = i % 4, .hdr_data = i});
    });
    pair.on_target([&] {
      EntrySpec odd{.options = 0};
      odd.match_bits = 1;
      odd.ignore_bits = 2;
      must(pair.interface().search(default_pt_index, odd, PTL_SEARCH_DELETE, nullptr));
      for (const uint64_t header : {1u, 3u, 5u, 7u})
        EXPECT_EQ(target.events.expect(PTL_EVENT_PUT_OVERFLOW).hdr_data, header);
      target.events.expect(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
      EntrySpec two{.options = PTL_ME_USE_ONCE};
      two.match_bits = 2;
      must(pair.interface().search(default_pt_index, two, PTL_SEARCH_ONLY, nullptr));
      EXPECT_EQ(target.events.expect(PTL_EVENT_SEARCH).hdr_data, 2u);
    });
  });
}

}  // namespace
}  // namespace lintel::test

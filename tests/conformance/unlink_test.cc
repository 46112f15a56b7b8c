// PtlLEUnlink and PtlMEUnlink, also with handles of former entries.
#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class UnlinkTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, UnlinkTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 3.11.3, 3.12.3
TEST_P(UnlinkTest, AnUnlinkedEntryTakesNothingMore) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      const ptl_handle_any_t first =
          target.append(target.entry(PTL_ME_OP_PUT), PTL_PRIORITY_LIST, tag(1));
      const ptl_handle_any_t second =
          target.append(target.entry(PTL_ME_OP_PUT), PTL_PRIORITY_LIST, tag(2));
      const ptl_handle_any_t third =
          target.append(target.entry(PTL_ME_OP_PUT), PTL_PRIORITY_LIST, tag(3));
      EXPECT_NE(first, second);
      must(pair.interface().unlink(first));
      must(pair.interface().unlink(third));
      target.events.expect_silence();
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] { EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(2)); });
  });
}

// spec 3.11.3, 3.12.3
TEST_P(UnlinkTest, OfAnEntryThatUnlinkedItselfIsInUseOnce) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    ptl_handle_any_t entry = PTL_INVALID_HANDLE;
    pair.on_target([&] { entry = target.append(PTL_ME_OP_PUT | PTL_ME_USE_ONCE); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect(PTL_EVENT_AUTO_UNLINK);
      EXPECT_EQ(PTL_IN_USE, pair.interface().unlink(entry));
      EXPECT_EQ(PTL_ARG_INVALID, pair.interface().unlink(entry));
      EXPECT_EQ(PTL_ARG_INVALID, pair.interface().unlink(entry));
      entry = target.append(PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect(PTL_EVENT_AUTO_UNLINK);
      const ptl_handle_any_t later = target.append(PTL_ME_OP_PUT);
      const int code = pair.interface().unlink(entry);
      EXPECT_TRUE(code == PTL_IN_USE || code == PTL_ARG_INVALID) << code;
      EXPECT_EQ(PTL_ARG_INVALID, pair.interface().unlink(entry));
      must(pair.interface().unlink(later));
    });
  });
}

// spec 3.11.3, 3.12.3
TEST_P(UnlinkTest, RepeatedWhileInUseComesToAnEndWithAllCounts) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr int rounds = 40;
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    for (int round = 0; round < rounds; ++round) {
      ptl_handle_any_t entry = PTL_INVALID_HANDLE;
      ptl_size_t before = 0;
      if (pair.is_target()) {
        before = target.counter.value().success;
        entry = target.append(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_COMM |
                                  PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                              {.counter = target.counter.handle()});
      }
      pair.barrier();
      if (pair.is_initiator()) initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ});
      if (pair.is_target()) {
        ptl_ct_event_t seen{};
        if (round % 2 != 0) must(PtlCTWait(target.counter.handle(), before + 1, &seen));
        int code = PTL_IN_USE;
        pair.rank().await_condition("the end of an entry", [&] {
          code = pair.interface().unlink(entry);
          return code != PTL_IN_USE;
        });
        const ptl_size_t counted = target.counter.value().success;
        EXPECT_TRUE(code == PTL_OK || (code == PTL_ARG_INVALID && counted == before + 1)) << code;
      }
      if (pair.is_initiator()) {
        initiator.source.events.expect(PTL_EVENT_SEND);
        initiator.fence();
      }
      pair.barrier();
    }
  });
}

// spec 3.11.3, 3.12.3
TEST_P(UnlinkTest, OfAnEntryThatMatchedAtItsAppendIsInUse) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      const ptl_handle_any_t entry = target.append(PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
      target.events.expect(PTL_EVENT_PUT_OVERFLOW);
      EXPECT_EQ(PTL_IN_USE, pair.interface().unlink(entry));
    });
  });
}

// spec 3.11.3, 3.12.3
TEST_P(UnlinkTest, OfAnOverflowEntryWithHeadersIsInUse) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    ptl_handle_any_t overflow = PTL_INVALID_HANDLE;
    pair.on_target([&] { overflow = target.append_overflow(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      initiator.put_and_wait({.length = 8});
      initiator.put_and_wait({.length = 8});
    });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(PTL_IN_USE, pair.interface().unlink(overflow));
      target.append(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
      EXPECT_EQ(PTL_IN_USE, pair.interface().unlink(overflow));
    });
    // A refused unlink changes nothing: the entry still accepts messages.
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      must(pair.interface().search(default_pt_index, {}, PTL_SEARCH_DELETE, nullptr));
      must(pair.interface().unlink(overflow));
    });
    pair.on_initiator([&] {
      initiator.put({.length = 8});
      initiator.fence();
    });
    pair.on_target([&] { EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 1); });
  });
}

// spec 3.11.3, 3.12.3
TEST_P(UnlinkTest, CountsAreCompleteWhenItReturns) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr ptl_size_t puts = 300;
    TargetSide target(pair);
    InitiatorSide initiator(
        pair, {.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE, .events = 2 * puts});
    ptl_handle_any_t entry = PTL_INVALID_HANDLE;
    pair.on_target([&] {
      entry = target.append(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM,
                            {.counter = target.counter.handle()});
    });
    if (pair.is_initiator())
      for (ptl_size_t i = 0; i < puts; ++i) initiator.put({.length = 8, .ack = PTL_CT_ACK_REQ});
    if (pair.is_target()) {
      ptl_ct_event_t first{};
      must(PtlCTWait(target.counter.handle(), 1, &first));
      pair.interface().unlink_when_idle(entry);
      pair.rank().publish(1, target.counter.value().success);
    }
    pair.barrier();
    const auto counted = pair.rank().published<ptl_size_t>(pair.target_rank(), 1);
    pair.on_initiator([&] { initiator.source.counter.expect(counted, puts - counted); });
    pair.on_target([&] { EXPECT_EQ(target.counter.value().success, counted); });
  });
}

// spec 3.11.3, 3.12.3
TEST_P(UnlinkTest, StaleHandlesNeverHitAnotherEntry) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      const ptl_handle_any_t stale = target.append(PTL_ME_OP_PUT);
      must(pair.interface().unlink(stale));
      for (int i = 0; i < 100; ++i) {
        const ptl_handle_any_t fresh = target.append(PTL_ME_OP_PUT);
        EXPECT_NE(PTL_OK, pair.interface().unlink(stale));
        must(pair.interface().unlink(fresh));
      }
      target.append(PTL_ME_OP_PUT);
      EXPECT_NE(PTL_OK, pair.interface().unlink(stale));
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
  });
}

// spec 3.11.3, 3.12.3
TEST_P(UnlinkTest, RacingWithAnArrivalEitherSucceedsOrIsInUse) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr int rounds = 300;
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    int cancelled = 0;
    int delivered = 0;
    for (int round = 0; round < rounds; ++round) {
      ptl_handle_any_t entry = PTL_INVALID_HANDLE;
      if (pair.is_target()) entry = target.append(PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
      pair.barrier();
      if (pair.is_initiator()) initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ});
      if (pair.is_target()) {
        const int code = pair.interface().unlink(entry);
        if (code == PTL_OK) {
          ++cancelled;
        } else {
          EXPECT_EQ(PTL_IN_USE, code);
          ++delivered;
          target.events.expect(PTL_EVENT_PUT);
          target.events.expect(PTL_EVENT_AUTO_UNLINK);
        }
      }
      if (pair.is_initiator()) {
        initiator.source.events.expect(PTL_EVENT_SEND);
        initiator.fence();
      }
      pair.barrier();
      if (pair.is_target()) target.events.expect_empty();
    }
    pair.on_target([&] {
      EXPECT_EQ(cancelled + delivered, rounds);
      EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), cancelled);
    });
  });
}

}  // namespace
}  // namespace lintel::test

// When an overflow entry is unlinked automatically, and when its buffer may be used again.
#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class AutoFreeTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, AutoFreeTest, testing::ValuesIn(all_pairs()), pair_name);

constexpr unsigned use_once_put = PTL_ME_OP_PUT | PTL_ME_USE_ONCE;

// spec 3.13.1, 3.11, 3.12
TEST_P(AutoFreeTest, FollowsTheLastEventOfTheBuffer) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(target.entry(use_once_put), PTL_OVERFLOW_LIST, tag(1)); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(1));
      EXPECT_EQ(target.events.expect(PTL_EVENT_AUTO_UNLINK).user_ptr, tag(1));
      target.events.expect_silence();  // a header still refers to the buffer
      target.append(target.entry(use_once_put), PTL_PRIORITY_LIST, tag(2));
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT_OVERFLOW).user_ptr, tag(2));
      const auto ends = target.events.expect_all({PTL_EVENT_AUTO_UNLINK, PTL_EVENT_AUTO_FREE});
      EXPECT_EQ(ends[0].user_ptr, tag(2));
      EXPECT_EQ(ends[1].user_ptr, tag(1));
      EXPECT_EQ(ends[1].pt_index, default_pt_index);
      target.events.expect_silence();
    });
  });
}

// spec 3.13.1, 3.11.4, 3.12.4
TEST_P(AutoFreeTest, FollowsASearchThatDeletesTheLastHeader) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(target.entry(use_once_put), PTL_OVERFLOW_LIST, tag(1)); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect(PTL_EVENT_AUTO_UNLINK);
      const EntrySpec once{.options = PTL_ME_USE_ONCE};
      must(pair.interface().search(default_pt_index, once, PTL_SEARCH_ONLY, tag(3)));
      target.events.expect(PTL_EVENT_SEARCH);
      target.events.expect_silence();
      must(pair.interface().search(default_pt_index, once, PTL_SEARCH_DELETE, tag(3)));
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT_OVERFLOW).user_ptr, tag(3));
      EXPECT_EQ(target.events.expect(PTL_EVENT_AUTO_FREE).user_ptr, tag(1));
    });
  });
}

// spec 3.13.1, 3.11.1, 3.12.1
TEST_P(AutoFreeTest, DoesNotComeWhenHeadersAreDisabled) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append_overflow(use_once_put | PTL_ME_UNEXPECTED_HDR_DISABLE); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect(PTL_EVENT_AUTO_UNLINK);
      target.events.expect_silence();
    });
  });
}

// spec 3.11.1, 3.12.1
TEST_P(AutoFreeTest, IsSuppressedByUnlinkDisable) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append_overflow(use_once_put | PTL_ME_EVENT_UNLINK_DISABLE); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.append(use_once_put | PTL_ME_EVENT_UNLINK_DISABLE);
      target.events.expect(PTL_EVENT_PUT_OVERFLOW);
      target.events.expect_silence();
    });
  });
}

// spec 3.13.1
TEST_P(AutoFreeTest, DoesNotComeForThePriorityListOrAfterAnExplicitUnlink) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    ptl_handle_any_t overflow = PTL_INVALID_HANDLE;
    pair.on_target([&] {
      overflow = target.append_overflow(PTL_ME_OP_PUT);
      target.append(use_once_put);
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect(PTL_EVENT_AUTO_UNLINK);
      pair.interface().unlink_when_idle(overflow);
      target.events.expect_silence();
    });
  });
}

// spec 3.11
TEST_P(AutoFreeTest, ComesAfterCountingEventsOfTheBuffer) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append_overflow(use_once_put | PTL_ME_EVENT_CT_COMM,
                             {.counter = target.counter.handle()});
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      const Counter matched(pair.ni());
      target.append(use_once_put | PTL_ME_EVENT_CT_OVERFLOW, {.counter = matched.handle()});
      target.events.skip_to(PTL_EVENT_AUTO_FREE);
      EXPECT_EQ(target.counter.value().success, 1u);
      EXPECT_EQ(matched.value().success, 1u);
    });
  });
}

class AutoFreeManagedTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, AutoFreeManagedTest, testing::ValuesIn(matching_pairs()),
                         pair_name);

// spec 3.12, 3.12.1, 3.13.1
TEST_P(AutoFreeManagedTest, WaitsForTheLastOfSeveralHeaders) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(
          target.entry(PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL, {.length = 100, .min_free = 40}),
          PTL_OVERFLOW_LIST, tag(1));
    });
    pair.on_initiator([&] {
      for (uint64_t i = 0; i < 4; ++i) initiator.put_and_wait({.length = 20, .hdr_data = i});
    });
    pair.on_target([&] {
      for (int i = 0; i < 4; ++i) target.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(target.events.expect(PTL_EVENT_AUTO_UNLINK).user_ptr, tag(1));
      for (uint64_t i = 0; i < 4; ++i) {
        target.events.expect_silence();
        target.append(use_once_put | PTL_ME_EVENT_UNLINK_DISABLE);
        const ptl_event_t event = target.events.expect(PTL_EVENT_PUT_OVERFLOW);
        EXPECT_EQ(event.hdr_data, i);
        EXPECT_EQ(event.start, target.memory.data() + 20 * i);
      }
      EXPECT_EQ(target.events.expect(PTL_EVENT_AUTO_FREE).user_ptr, tag(1));
    });
  });
}

// spec 3.12, 3.13.1
TEST_P(AutoFreeManagedTest, BuffersTakeTurns) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr int rounds = 20;
    TargetSide target(pair, {.events = 1024});
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_SUCCESS_DISABLE});
    const auto post = [&](uintptr_t half) {
      target.append(
          target.entry(
              PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_COMM_DISABLE,
              {.start = target.memory.data() + 2048 * half, .length = 2048, .min_free = 512}),
          PTL_OVERFLOW_LIST, tag(half));
    };
    pair.on_target([&] {
      post(0);
      post(1);
    });
    for (int round = 0; round < rounds; ++round) {
      const uintptr_t half = static_cast<uintptr_t>(round) % 2;
      pair.on_initiator([&] {  // four of these use up one buffer
        for (uint32_t i = 0; i < 4; ++i) {
          fill(initiator.source.memory.first(500), static_cast<uint32_t>(round) * 4 + i);
          initiator.put({.length = 500, .ack = PTL_NO_ACK_REQ});
          initiator.fence();
        }
      });
      pair.on_target([&] {
        EXPECT_EQ(target.events.expect(PTL_EVENT_AUTO_UNLINK).user_ptr, tag(half));
        for (uint32_t i = 0; i < 4; ++i) {
          target.append(use_once_put | PTL_ME_EVENT_UNLINK_DISABLE);
          const ptl_event_t event = target.events.expect(PTL_EVENT_PUT_OVERFLOW);
          expect_pattern({static_cast<std::byte*>(event.start), 500},
                         static_cast<uint32_t>(round) * 4 + i);
        }
        EXPECT_EQ(target.events.expect(PTL_EVENT_AUTO_FREE).user_ptr, tag(half));
        post(half);
      });
    }
  });
}

}  // namespace
}  // namespace lintel::test

// Flow control: its causes, what both ends observe, and recovery.
#include <iterator>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class FlowControlTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, FlowControlTest, testing::ValuesIn(all_pairs()), pair_name);

constexpr TargetSettings controlled{.pt_options = PTL_PT_FLOWCTRL};

// spec 2.8, 3.3.7, 3.13.1, 3.13.3
TEST_P(FlowControlTest, AMessageWithoutMatchDisablesThePortal) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, controlled);
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY});
    pair.on_initiator(
        [&] { initiator.put_and_wait({.length = 8, .user_ptr = tag(3)}, PTL_NI_PT_DISABLED); });
    pair.on_target([&] {
      const ptl_event_t event = target.events.expect(PTL_EVENT_PT_DISABLED);
      EXPECT_EQ(event.pt_index, default_pt_index);
      EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 1);
      // Local operations still work. Messages are refused even if an entry matches.
      fill(target.memory, 1);
      target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET);
    });
    pair.on_initiator([&] {
      for (const Operation operation : all_operations)
        perform(initiator, operation, {.length = 8}, PTL_NI_PT_DISABLED);
      initiator.source.counter.expect_steady(0, 3);
      initiator.result.counter.expect_steady(0, 3);
      expect_bytes(initiator.result.memory, std::byte{0});
    });
    pair.on_target([&] {
      target.events.expect_silence();  // one event per disabling
      expect_pattern(target.memory, 1);
      must(PtlPTEnable(pair.ni(), default_pt_index));
    });
    pair.on_initiator([&] {
      for (const Operation operation : all_operations) perform(initiator, operation, {.length = 8});
    });
    pair.on_target([&] {
      for (const Operation operation : all_operations)
        target.events.expect(target_event(operation));
      target.events.expect_empty();
    });
  });
}

// spec 2.8, 3.3.7
TEST_P(FlowControlTest, EveryMessageThatIsRefusedCountsAsDropped) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, controlled);
    InitiatorSide initiator(pair);
    ptl_sr_value_t dropped = 0;
    for (int round = 0; round < 2; ++round) {
      pair.on_initiator([&] {
        for (const Operation operation : all_operations)
          perform(initiator, operation, {.length = 8}, PTL_NI_PT_DISABLED);
      });
      pair.on_target([&] {
        dropped += std::size(all_operations);
        EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), dropped);
        must(PtlPTDisable(pair.ni(), default_pt_index));  // disabled in both ways
        must(PtlPTEnable(pair.ni(), default_pt_index));
        target.append(PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
      });
      pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
      pair.on_target([&] { EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), dropped); });
    }
  });
}

// spec 2.8
TEST_P(FlowControlTest, EveryOperationTriggersIt) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, controlled);
    InitiatorSide initiator(pair);
    for (const Operation operation : all_operations) {
      SCOPED_TRACE(name_of(operation));
      pair.on_initiator([&] { perform(initiator, operation, {.length = 8}, PTL_NI_PT_DISABLED); });
      pair.on_target([&] {
        target.events.expect(PTL_EVENT_PT_DISABLED);
        must(PtlPTEnable(pair.ni(), default_pt_index));
      });
    }
  });
}

// spec 2.8, 3.13.5
TEST_P(FlowControlTest, AFullEventQueueDisablesThePortalAndLosesNothing) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.pt_options = PTL_PT_FLOWCTRL, .events = 8});
    InitiatorSide initiator(pair);
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    uint64_t sent = 0;
    for (int round = 0; round < 3; ++round) {
      const uint64_t before = sent;
      pair.on_initiator([&] {
        for (bool refused = false; !refused;) {
          ASSERT_LT(sent - before, 100'000u) << "an event queue of 8 never gets full";
          fill(initiator.source.memory.first(8), static_cast<uint32_t>(sent));
          initiator.put({.length = 8, .hdr_data = sent});
          const auto events = initiator.source.events.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK});
          refused = events[1].ni_fail_type == PTL_NI_PT_DISABLED;
          if (!refused) {
            EXPECT_EQ(events[1].ni_fail_type, PTL_NI_OK);
            ++sent;
          }
        }
        EXPECT_GE(sent - before, 8u) << "room for at least the number of events requested";
        pair.rank().publish(1, sent);
      });
      sent = pair.rank().published<uint64_t>(pair.initiator_rank(), 1);
      pair.on_target([&] {
        expect_pattern(target.memory.first(8), static_cast<uint32_t>(sent - 1));
        for (uint64_t i = before; i < sent; ++i)
          EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).hdr_data, i);
        target.events.expect(PTL_EVENT_PT_DISABLED);
        target.events.expect_silence();
        must(PtlPTEnable(pair.ni(), default_pt_index));
      });
    }
  });
}

// The portal table entry is enabled before the queue has been drained. An entry that posts no
// events for successes still needs room for its failures.
// spec 2.8, 3.13.5, 3.7.4
TEST_P(FlowControlTest, AQueueThatIsStillFullLosesNothing) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.pt_options = PTL_PT_FLOWCTRL, .events = 8});
    InitiatorSide initiator(pair);
    const GuardedPages pages(1);
    EntrySpec missing{
        .start = pages.end(),
        .length = 64,
        .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE};
    ptl_handle_any_t entry = PTL_INVALID_HANDLE;
    pair.on_target([&] { entry = target.append(PTL_ME_OP_PUT); });
    uint64_t sent = 0;
    pair.on_initiator([&] {
      for (bool refused = false; !refused;) {
        initiator.put({.length = 8, .hdr_data = sent});
        const auto events = initiator.source.events.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK});
        refused = events[1].ni_fail_type == PTL_NI_PT_DISABLED;
        if (!refused) ++sent;
      }
      pair.rank().publish(1, sent);
    });
    sent = pair.rank().published<uint64_t>(pair.initiator_rank(), 1);
    const auto refuse_once_more = [&] {
      pair.on_target([&] { must(PtlPTEnable(pair.ni(), default_pt_index)); });
      pair.on_initiator([&] { initiator.put_and_wait({.length = 8}, PTL_NI_PT_DISABLED); });
    };
    refuse_once_more();
    pair.on_target([&] {
      must(pair.interface().unlink(entry));
      pair.interface().append(default_pt_index, missing);
    });
    refuse_once_more();
    pair.on_target([&] {
      for (uint64_t i = 0; i < sent; ++i)
        EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).hdr_data, i);
      target.events.expect(PTL_EVENT_PT_DISABLED);
      target.events.expect_silence();
      must(PtlPTEnable(pair.ni(), default_pt_index));
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}, PTL_NI_SEGV); });
    pair.on_target([&] { target.events.expect(PTL_EVENT_PUT, PTL_NI_SEGV); });
  });
}

// spec 2.8, 3.6.1
TEST_P(FlowControlTest, RunningOutOfUnexpectedHeadersDisablesThePortal) {
  ptl_ni_limits_t desired{};
  desired.max_unexpected_headers = 16;
  PairOptions options;
  options.desired = &desired;
  run_pair(GetParam(), options, [](Pair& pair) {
    TargetSide target(pair, controlled);
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE});
    const auto room = static_cast<ptl_size_t>(pair.limits().max_unexpected_headers);
    ASSERT_LE(room, 1'100'000u) << "a desired limit of 16 has been ignored";
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] {
      for (ptl_size_t i = 0; i < room; ++i) initiator.put({.length = 8});
      initiator.source.counter.expect(room);
      initiator.put({.length = 8});
      initiator.source.events.expect(PTL_EVENT_ACK, PTL_NI_PT_DISABLED);
    });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PT_DISABLED);
      must(pair.interface().search(default_pt_index, {.options = PTL_ME_USE_ONCE},
                                   PTL_SEARCH_DELETE, nullptr));
      target.events.expect(PTL_EVENT_PUT_OVERFLOW);
      must(PtlPTEnable(pair.ni(), default_pt_index));
    });
    pair.on_initiator([&] {
      initiator.put({.length = 8});
      initiator.source.counter.expect(room + 1, 1);
    });
  });
}

// spec 3.11.1, 3.12.1
TEST_P(FlowControlTest, AnEntryMaySuppressTheEventThatItCaused) {
  ptl_ni_limits_t desired{};
  desired.max_unexpected_headers = 16;
  PairOptions options;
  options.desired = &desired;
  run_pair(GetParam(), options, [](Pair& pair) {
    TargetSide target(pair, controlled);
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE});
    const auto room = static_cast<ptl_size_t>(pair.limits().max_unexpected_headers);
    ASSERT_LE(room, 1'100'000u) << "a desired limit of 16 has been ignored";
    ptl_handle_any_t entry = PTL_INVALID_HANDLE;
    pair.on_target([&] {
      entry = target.append_overflow(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE |
                                     PTL_ME_EVENT_FLOWCTRL_DISABLE | PTL_ME_EVENT_OVER_DISABLE);
    });
    pair.on_initiator([&] {
      for (ptl_size_t i = 0; i < room + 1; ++i) initiator.put({.length = 8});
      initiator.source.counter.expect(room, 1);
    });
    pair.on_target([&] {
      target.events.expect_silence();
      // A message without a matching entry: no entry could suppress the event.
      must(pair.interface().search(
          default_pt_index, {.options = PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_OVER_DISABLE},
          PTL_SEARCH_DELETE, nullptr));
      must(pair.interface().unlink(entry));
      must(PtlPTEnable(pair.ni(), default_pt_index));
    });
    pair.on_initiator([&] {
      initiator.put({.length = 8});
      initiator.source.counter.expect(room, 2);
    });
    pair.on_target([&] { target.events.expect(PTL_EVENT_PT_DISABLED); });
  });
}

// spec 3.11.1, 3.12.1, 2.8
TEST_P(FlowControlTest, AnEntryMaySuppressTheEventOfAFullQueue) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.pt_options = PTL_PT_FLOWCTRL, .events = 8});
    InitiatorSide initiator(pair);
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_EVENT_FLOWCTRL_DISABLE); });
    uint64_t sent = 0;
    pair.on_initiator([&] {
      for (bool refused = false; !refused; ++sent) {
        ASSERT_LT(sent, 100'000u) << "an event queue of 8 never gets full";
        initiator.put({.length = 8, .hdr_data = sent});
        const auto events = initiator.source.events.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK});
        refused = events[1].ni_fail_type == PTL_NI_PT_DISABLED;
      }
      pair.rank().publish(1, sent - 1);
    });
    pair.on_target([&] {
      const auto taken = pair.rank().published<uint64_t>(pair.initiator_rank(), 1);
      for (uint64_t i = 0; i < taken; ++i)
        EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).hdr_data, i);
      target.events.expect_silence();
      must(PtlPTEnable(pair.ni(), default_pt_index));
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
  });
}

// spec 2.8
TEST_P(FlowControlTest, EverythingInFlightBehindTheTriggerIsRefused) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr ptl_size_t count = 500;
    TargetSide target(pair, {.bytes = 8 * count, .pt_options = PTL_PT_FLOWCTRL, .events = count});
    InitiatorSide initiator(pair, {.bytes = 8 * count,
                                   .options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE,
                                   .events = count});
    pair.on_target([&] {
      for (ptl_size_t i = 0; i < 100; ++i) {
        target.append(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
      }
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 1);
      for (ptl_size_t i = 0; i < count; ++i)
        initiator.put({.length = 8, .local_offset = 8 * i, .remote_offset = 8 * i});
      initiator.source.counter.expect(100, count - 100);
      for (ptl_size_t i = 100; i < count; ++i)
        initiator.source.events.expect(PTL_EVENT_ACK, PTL_NI_PT_DISABLED);
    });
    pair.on_target([&] {
      for (int i = 0; i < 100; ++i) target.events.expect(PTL_EVENT_PUT);
      target.events.expect(PTL_EVENT_PT_DISABLED);
      target.events.expect_silence();
      expect_pattern(target.memory.first(800), 1);
      expect_bytes(target.memory.subspan(800), std::byte{0});
    });
  });
}

// spec 2.8, 3.7
TEST_P(FlowControlTest, OtherPortalsAreNotAffected) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, controlled);
    TargetSide other(pair, {.pt_options = PTL_PT_FLOWCTRL, .pt_index = 6});
    InitiatorSide initiator(pair);
    pair.on_target([&] { other.append(other.entry(PTL_ME_OP_PUT)); });
    pair.on_initiator([&] {
      initiator.put_and_wait({.length = 8}, PTL_NI_PT_DISABLED);
      initiator.put_and_wait({.length = 8, .pt_index = 6});
    });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PT_DISABLED);
      other.events.expect(PTL_EVENT_PUT);
    });
  });
}

// spec 2.8, 3.13.5
TEST_P(FlowControlTest, PortalsSharingAQueueEachHaveRoomForTheirEvent) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr ptl_pt_index_t first = 20;
    constexpr ptl_pt_index_t portals = 12;
    InitiatorSide initiator(pair);
    EventQueue events;
    pair.on_target([&] {
      events = EventQueue(pair.ni(), 1);
      for (ptl_pt_index_t i = 0; i < portals; ++i) {
        ptl_pt_index_t index = 0;
        must(PtlPTAlloc(pair.ni(), PTL_PT_FLOWCTRL, events.handle(), first + i, &index));
      }
    });
    pair.on_initiator([&] {
      for (ptl_pt_index_t i = 0; i < portals; ++i)
        initiator.put_and_wait({.length = 8, .pt_index = first + i}, PTL_NI_PT_DISABLED);
    });
    pair.on_target([&] {
      for (ptl_pt_index_t i = 0; i < portals; ++i)
        EXPECT_EQ(events.expect(PTL_EVENT_PT_DISABLED).pt_index, first + i);
    });
  });
}

// spec 2.8
TEST_P(FlowControlTest, WithoutItAFullQueueLosesEventsButNotMessages) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr ptl_size_t count = 3000;
    TargetSide target(pair, {.bytes = 8 * count, .events = 4});
    InitiatorSide initiator(
        pair, {.bytes = 8 * count, .options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 1);
      for (ptl_size_t i = 0; i < count; ++i)
        initiator.put({.length = 8, .local_offset = 8 * i, .remote_offset = 8 * i});
      initiator.source.counter.expect(count);
    });
    pair.on_target([&] {
      expect_pattern(target.memory, 1);
      EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 0);
    });
  });
}

}  // namespace
}  // namespace lintel::test

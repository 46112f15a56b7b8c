// The kinds of acknowledgment, and the cases without one.
#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class AcknowledgmentTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, AcknowledgmentTest, testing::ValuesIn(all_pairs()), pair_name);

constexpr unsigned count_acks = PTL_MD_EVENT_CT_ACK;

// spec 3.15.1
TEST_P(AcknowledgmentTest, FullRequestGivesEventAndCount) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = count_acks});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      initiator.put_and_wait({.length = 8});
      initiator.source.counter.expect_steady(1);
    });
  });
}

// spec 3.15.1, 4.3
TEST_P(AcknowledgmentTest, FullRequestWithoutEventQueueStillCounts) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      const Descriptor counted(pair.ni(), initiator.source.memory, count_acks, PTL_EQ_NONE,
                               initiator.source.counter.handle());
      must(PtlPut(counted.handle(), 0, 64, PTL_ACK_REQ, pair.target_id(), default_pt_index, 0, 0,
                  nullptr, 0));
      initiator.source.counter.expect_steady(1);
    });
  });
}

// spec 3.15.1, 3.13.4
TEST_P(AcknowledgmentTest, CountingRequestsCountForPutAndAtomic) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      const Descriptor counted(pair.ni(), initiator.source.memory, count_acks, PTL_EQ_NONE,
                               initiator.source.counter.handle());
      ptl_size_t acks = 0;
      for (const ptl_ack_req_t kind : {PTL_CT_ACK_REQ, PTL_OC_ACK_REQ}) {
        must(PtlPut(counted.handle(), 0, 64, kind, pair.target_id(), default_pt_index, 0, 0,
                    nullptr, 0));
        initiator.source.counter.expect_steady(++acks);
        must(PtlAtomic(counted.handle(), 0, 64, kind, pair.target_id(), default_pt_index, 0, 0,
                       nullptr, 0, PTL_SUM, PTL_INT64_T));
        initiator.source.counter.expect_steady(++acks);
      }
    });
  });
}

// There is also an event queue: a full event would take a slot of it that the client has not
// reserved.
// spec 3.13.1, 3.15.1
TEST_P(AcknowledgmentTest, CountingRequestsPostNoEventOfASuccess) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = count_acks});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      ptl_size_t acks = 0;
      for (const ptl_ack_req_t kind : {PTL_CT_ACK_REQ, PTL_OC_ACK_REQ}) {
        initiator.put({.length = 64, .ack = kind});
        initiator.atomic({.length = 64, .ack = kind}, PTL_SUM, PTL_INT64_T);
        // Truncated: the acknowledgment reports this although it counts as a success.
        initiator.put({.length = 64, .remote_offset = 4096 - 10, .ack = kind});
        for (int i = 0; i < 3; ++i) initiator.source.events.expect(PTL_EVENT_SEND);
        initiator.source.counter.expect_steady(acks += 3);
        initiator.source.events.expect_empty();
      }
    });
  });
}

// spec 3.13.3, 3.15.1
TEST_P(AcknowledgmentTest, CountingRequestsPostAnEventOfAFailure) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = count_acks});
    pair.on_target([&] { target.append(PTL_ME_OP_GET); });
    pair.on_initiator([&] {
      initiator.put({.length = 64, .ack = PTL_CT_ACK_REQ});
      initiator.expect_send_and_ack(PTL_NI_OP_VIOLATION);
      initiator.source.counter.expect_steady(0, 1);
    });
    pair.on_target([&] { must(PtlPTDisable(pair.ni(), default_pt_index)); });
    pair.on_initiator([&] {
      ptl_size_t failures = 1;
      for (const ptl_ack_req_t kind : {PTL_CT_ACK_REQ, PTL_OC_ACK_REQ}) {
        initiator.put({.length = 64, .ack = kind});
        initiator.expect_send_and_ack(PTL_NI_PT_DISABLED);
        initiator.source.counter.expect_steady(0, ++failures);
      }
      initiator.source.events.expect_empty();
    });
  });
}

// Without a counter, only the queue can report: it gets events for failures only.
// spec 3.13.3, 3.15.1, 3.15.2
TEST_P(AcknowledgmentTest, CountingRequestsWithoutCounterStillReportFailures) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide refusing(pair);
    TargetSide accepting(pair, {.pt_index = 6});
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      refusing.append(refusing.entry(PTL_ME_OP_GET));
      accepting.append(accepting.entry(PTL_ME_OP_PUT));
    });
    pair.on_initiator([&] {
      const EventQueue& events = initiator.source.events;
      const Descriptor uncounted(pair.ni(), initiator.source.memory, 0, events.handle());
      const auto put_to = [&](ptl_pt_index_t index) {
        must(PtlPut(uncounted.handle(), 0, 64, PTL_CT_ACK_REQ, pair.target_id(), index, 0, 0,
                    nullptr, 0));
      };
      put_to(default_pt_index);
      const std::vector<ptl_event_t> both = events.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK});
      EXPECT_EQ(fail_name(both[1].ni_fail_type), "PTL_NI_OP_VIOLATION");
      put_to(6);
      events.expect(PTL_EVENT_SEND);
      initiator.fence();
      events.expect_silence();
    });
  });
}

// spec 3.15.1
TEST_P(AcknowledgmentTest, CountingRequestReportsViolationsAsFailures) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_GET); });
    pair.on_initiator([&] {
      const Descriptor counted(pair.ni(), initiator.source.memory, count_acks, PTL_EQ_NONE,
                               initiator.source.counter.handle());
      must(PtlPut(counted.handle(), 0, 64, PTL_CT_ACK_REQ, pair.target_id(), default_pt_index, 0, 0,
                  nullptr, 0));
      initiator.source.counter.expect_steady(0, 1);
    });
  });
}

// spec 3.15.1
TEST_P(AcknowledgmentTest, CompletionRequestCountsViolationsAndMismatchesAsSuccess) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    TargetSide empty(pair, {.pt_index = 6});
    InitiatorSide initiator(pair);
    pair.on_target([&] { target.append(PTL_ME_OP_GET); });
    pair.on_initiator([&] {
      const Descriptor counted(pair.ni(), initiator.source.memory, count_acks, PTL_EQ_NONE,
                               initiator.source.counter.handle());
      const auto put_to = [&](ptl_pt_index_t index) {
        must(PtlPut(counted.handle(), 0, 64, PTL_OC_ACK_REQ, pair.target_id(), index, 0, 0, nullptr,
                    0));
      };
      put_to(default_pt_index);  // an operation violation
      initiator.source.counter.expect_steady(1);
      put_to(6);  // no match
      initiator.source.counter.expect_steady(2);
    });
    pair.on_target([&] {
      EXPECT_EQ(pair.interface().status(PTL_SR_OPERATION_VIOLATIONS), 1);
      EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 1);
    });
  });
}

// Clients repeat a message that failed as dropped. Without an acknowledgment they would wait for
// ever.
// spec 2.8, 3.13.3
TEST_P(AcknowledgmentTest, TellsOfMessagesThatNothingMatches) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.bytes = 100000});
    InitiatorSide initiator(pair, {.bytes = 100000, .options = count_acks | PTL_MD_EVENT_CT_REPLY});
    ptl_size_t acked = 0;
    ptl_size_t replied = 0;
    for (const ptl_size_t length : {8u, 100000u}) {
      pair.on_initiator([&] {
        for (const Operation operation : all_operations) {
          if (length > 8 && atomic(operation)) continue;
          perform(initiator, operation, {.length = length}, PTL_NI_DROPPED);
          ++(test::replied(operation) ? replied : acked);
        }
        initiator.put({.length = length, .ack = PTL_CT_ACK_REQ});
        initiator.source.events.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK});
        ++acked;
        initiator.put({.length = length, .ack = PTL_NO_ACK_REQ});
        initiator.source.events.expect(PTL_EVENT_SEND);
        initiator.fence();
        initiator.source.events.expect_silence();
        initiator.result.events.expect_silence();
        initiator.source.counter.expect(0, acked);
        initiator.result.counter.expect(0, replied);
      });
    }
    pair.on_target([&] {
      EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 7 + 4);
      target.events.expect_empty();
    });
  });
}

// spec 3.15.1
TEST_P(AcknowledgmentTest, CountingOperationsCountsWhatNothingMatches) {
  run_pair(GetParam(), [](Pair& pair) {
    const TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = count_acks});
    pair.on_initiator([&] {
      initiator.put({.length = 8, .ack = PTL_OC_ACK_REQ});
      initiator.source.counter.expect(1);
    });
  });
}

// spec 2.8, 3.13.3
TEST_P(AcknowledgmentTest, TellsThatUnexpectedHeadersRanOut) {
  ptl_ni_limits_t desired{};
  desired.max_unexpected_headers = 8;
  PairOptions options;
  options.desired = &desired;
  run_pair(GetParam(), options, [](Pair& pair) {
    TargetSide target(pair, {.events = 4});
    InitiatorSide initiator(pair, {.options = count_acks | PTL_MD_EVENT_SUCCESS_DISABLE});
    const auto room = static_cast<ptl_size_t>(pair.limits().max_unexpected_headers);
    ASSERT_LE(room, 1'100'000u) << "a desired limit of 8 has been ignored";
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] {
      for (ptl_size_t i = 0; i < room + 3; ++i) initiator.put({.length = 8});
      initiator.source.counter.expect(room, 3);
      for (int i = 0; i < 3; ++i) initiator.source.events.expect(PTL_EVENT_ACK, PTL_NI_DROPPED);
      initiator.source.events.expect_empty();
    });
    pair.on_target([&] { EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 3); });
  });
}

// spec 3.13.4, 4.2.1
TEST_P(AcknowledgmentTest, NamesTheListThatTookTheMessage) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT | PTL_ME_OP_GET); });
    pair.on_initiator([&] {
      EXPECT_EQ(initiator.put_and_wait({.length = 8}).ack.ptl_list, PTL_OVERFLOW_LIST);
      EXPECT_EQ(initiator.get_and_wait({.length = 8}).ptl_list, PTL_OVERFLOW_LIST);
    });
  });
}

// spec 3.15.1, 3.15.2
TEST_P(AcknowledgmentTest, ComesAfterTheDataIsInPlace) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr std::size_t bytes = 200000;
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET); });
    pair.on_initiator([&] {
      for (uint32_t round = 0; round < 20; ++round) {
        const ptl_size_t length = round % 2 == 0 ? bytes : 700;
        fill(initiator.source.memory, round);
        initiator.put_and_wait({.length = length});
        initiator.get_and_wait({.length = length});
        expect_pattern(initiator.result.memory.first(length), round);
      }
    });
  });
}

}  // namespace
}  // namespace lintel::test

// Which full events and which counts a memory descriptor requests.
#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class DescriptorEventsTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, DescriptorEventsTest, testing::ValuesIn(all_pairs()), pair_name);

// Runs `check` at the initiator with a target that accepts all operations.
void with_open_target(const PairKind& kind, unsigned descriptor_options,
                      const std::function<void(Pair&, InitiatorSide&)>& check) {
  run_pair(kind, [&](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = descriptor_options});
    pair.on_target(
        [&] { target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] { check(pair, initiator); });
  });
}

// spec 3.10.1
TEST_P(DescriptorEventsTest, SendDisableLeavesOnlyRemoteCompletion) {
  with_open_target(GetParam(), PTL_MD_EVENT_SEND_DISABLE, [](Pair&, InitiatorSide& initiator) {
    for (const Operation operation : all_operations) {
      SCOPED_TRACE(name_of(operation));
      start(initiator, operation, {.length = 8});
      (acked(operation) ? initiator.source : initiator.result)
          .events.expect(acked(operation) ? PTL_EVENT_ACK : PTL_EVENT_REPLY);
      initiator.fence();
      initiator.source.events.expect_silence();
      initiator.result.events.expect_empty();
    }
  });
}

// spec 3.10.1
TEST_P(DescriptorEventsTest, SendDisableDoesNotAffectCounting) {
  with_open_target(GetParam(), PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_SEND,
                   [](Pair&, InitiatorSide& initiator) {
                     initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ});
                     initiator.source.counter.expect_steady(1);
                     initiator.source.events.expect_empty();
                   });
}

// spec 3.10.1
TEST_P(DescriptorEventsTest, SuccessDisableLeavesNoFullEvents) {
  with_open_target(GetParam(), PTL_MD_EVENT_SUCCESS_DISABLE, [](Pair&, InitiatorSide& initiator) {
    for (const Operation operation : all_operations) start(initiator, operation, {.length = 8});
    initiator.fence();
    initiator.source.events.expect_silence();
    initiator.result.events.expect_silence();
    initiator.source.counter.expect(0);
    initiator.result.counter.expect(0);
  });
}

// spec 3.10.1, 3.13.3
TEST_P(DescriptorEventsTest, SuccessDisableStillReportsFailures) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] { target.append(0); });
    pair.on_initiator([&] {
      initiator.put({.length = 8, .user_ptr = tag(31)});
      EXPECT_EQ(initiator.source.events.expect(PTL_EVENT_ACK, PTL_NI_OP_VIOLATION).user_ptr,
                tag(31));
      initiator.get({.length = 8, .user_ptr = tag(32)});
      EXPECT_EQ(initiator.result.events.expect(PTL_EVENT_REPLY, PTL_NI_OP_VIOLATION).user_ptr,
                tag(32));
      initiator.source.events.expect_silence();
    });
  });
}

// spec 3.10.1, 3.14
TEST_P(DescriptorEventsTest, CountersCountNothingUnlessAsked) {
  with_open_target(GetParam(), 0, [](Pair&, InitiatorSide& initiator) {
    for (const Operation operation : all_operations) perform(initiator, operation, {.length = 8});
    initiator.source.counter.expect_steady(0);
    initiator.result.counter.expect_steady(0);
  });
}

// spec 3.10.1, 3.15.4
TEST_P(DescriptorEventsTest, CountSendCountsEverySend) {
  with_open_target(GetParam(), PTL_MD_EVENT_CT_SEND, [](Pair&, InitiatorSide& initiator) {
    ptl_size_t sent = 0;
    for (const Operation operation : all_operations) {
      perform(initiator, operation, {.length = 8});
      sent += sends(operation) ? 1 : 0;
      initiator.source.counter.expect_steady(sent);
    }
    initiator.result.counter.expect(0);
  });
}

// spec 3.10.1, 3.15.1
TEST_P(DescriptorEventsTest, CountAckCountsEveryAcknowledgment) {
  with_open_target(GetParam(), PTL_MD_EVENT_CT_ACK, [](Pair&, InitiatorSide& initiator) {
    ptl_size_t acks = 0;
    for (const Operation operation : all_operations) {
      perform(initiator, operation, {.length = 8});
      acks += acked(operation) ? 1 : 0;
      initiator.source.counter.expect_steady(acks);
    }
    initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ});
    initiator.fence();
    initiator.source.counter.expect_steady(acks);
    initiator.result.counter.expect(0);
  });
}

// spec 3.10.1, 3.15.3
TEST_P(DescriptorEventsTest, CountReplyCountsEveryReply) {
  with_open_target(GetParam(), PTL_MD_EVENT_CT_REPLY, [](Pair&, InitiatorSide& initiator) {
    ptl_size_t replies = 0;
    for (const Operation operation : all_operations) {
      perform(initiator, operation, {.length = 8});
      replies += replied(operation) ? 1 : 0;
      initiator.result.counter.expect_steady(replies);
    }
    initiator.source.counter.expect(0);
  });
}

// spec 3.10.1, 3.14
TEST_P(DescriptorEventsTest, SendAndAckOfOneOperationAreTwoEvents) {
  with_open_target(GetParam(), PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK,
                   [](Pair&, InitiatorSide& initiator) {
                     initiator.put_and_wait({.length = 100});
                     initiator.source.counter.expect_steady(2);
                   });
}

// spec 3.10.1, 3.13.4
TEST_P(DescriptorEventsTest, CountBytesAddsTheLengthSent) {
  with_open_target(GetParam(), PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_BYTES,
                   [](Pair&, InitiatorSide& initiator) {
                     initiator.put_and_wait({.length = 100});
                     initiator.put_and_wait({.length = 0});
                     initiator.put_and_wait({.length = 33});
                     initiator.source.counter.expect_steady(133);
                   });
}

// spec 3.10.1, 3.15.1
TEST_P(DescriptorEventsTest, CountBytesAddsTheLengthAcknowledged) {
  with_open_target(GetParam(), PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES,
                   [](Pair&, InitiatorSide& initiator) {
                     initiator.put_and_wait({.length = 1000});
                     initiator.source.counter.expect_steady(1000);
                     initiator.put_and_wait({.length = 1000, .remote_offset = 4096 - 50});
                     initiator.source.counter.expect_steady(1050);
                     initiator.put({.length = 500, .ack = PTL_CT_ACK_REQ});
                     initiator.source.counter.expect_steady(1550);
                   });
}

// spec 3.10.1
TEST_P(DescriptorEventsTest, CountBytesAddsTheLengthReplied) {
  with_open_target(GetParam(), PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_BYTES,
                   [](Pair&, InitiatorSide& initiator) {
                     initiator.get_and_wait({.length = 1000});
                     initiator.get_and_wait({.length = 1000, .remote_offset = 4096 - 24});
                     initiator.result.counter.expect_steady(1024);
                   });
}

// spec 3.10.1, 3.14.1, 3.15.1
TEST_P(DescriptorEventsTest, FailuresCountOneEvenWithBytes) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(
        pair, {.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_BYTES});
    pair.on_target([&] { target.append(0); });
    pair.on_initiator([&] {
      initiator.put_and_wait({.length = 100}, PTL_NI_OP_VIOLATION);
      initiator.source.counter.expect_steady(0, 1);
      initiator.get_and_wait({.length = 100}, PTL_NI_OP_VIOLATION);
      initiator.result.counter.expect_steady(0, 1);
    });
  });
}

// spec 3.13, 3.10
TEST_P(DescriptorEventsTest, DescriptorsMayShareAnEventQueueAndACounter) {
  with_open_target(GetParam(), 0, [](Pair& pair, InitiatorSide& initiator) {
    const Counter shared(pair.ni());
    std::vector<Descriptor> descriptors;
    for (int i = 0; i < 4; ++i) {
      descriptors.emplace_back(pair.ni(), initiator.source.memory, PTL_MD_EVENT_CT_ACK,
                               initiator.source.events.handle(), shared.handle());
    }
    for (uintptr_t i = 0; i < 4; ++i) {
      must(PtlPut(descriptors[i].handle(), 0, 16, PTL_ACK_REQ, pair.target_id(), default_pt_index,
                  0, 0, tag(i + 1), 0));
    }
    uintptr_t sum = 0;
    for (int i = 0; i < 8; ++i) sum += tag_of(initiator.source.events.next().user_ptr);
    EXPECT_EQ(sum, 2u * (1 + 2 + 3 + 4));
    shared.expect_steady(4);
  });
}

}  // namespace
}  // namespace lintel::test

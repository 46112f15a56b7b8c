// What the Portals components of Open MPI 4.1 do and the specification does not promise: each test
// plays such a component and shows what it is told. docs/clients.md says what the components make
// of it. Where the library is at fault instead, these tests fail.
#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class ClientPatternsTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, ClientPatternsTest, testing::ValuesIn(matching_pairs()), pair_name);

// The MTL sends a long message as one put, into a receive that may be shorter. Nothing is left to
// fetch then: what arrived, and where, is in the event. The MTL goes on to read the rest, of 0 bytes,
// and waits for the reply to a get that it has not started.
// spec 3.12.1, 3.13.3
TEST_P(ClientPatternsTest, ATruncatedPutTellsBothEndsWhatWasKept) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr ptl_size_t room = 100;
    constexpr ptl_size_t length = 3000;
    TargetSide target(
        pair, {.pt_options = PTL_PT_FLOWCTRL | PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE});
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      EntrySpec receive =
          target.entry(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
      receive.length = room;
      target.append(receive);
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory.first(length), 7);
      const SendAndAck events = initiator.put_and_wait({.length = length, .hdr_data = length});
      EXPECT_EQ(events.ack.mlength, room);
      EXPECT_EQ(events.ack.ptl_list, PTL_PRIORITY_LIST);
    });
    pair.on_target([&] {
      const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(event.rlength, length);
      EXPECT_EQ(event.mlength, room);
      EXPECT_EQ(event.hdr_data, length);
      expect_pattern(target.memory.first(room), 7);
      expect_bytes(target.memory.subspan(room), std::byte{0});
      target.events.expect_empty();
    });
  });
}

// The MTL sends again what flow control has refused. If that is refused again, it is told again, and
// has to try once more; the MTL takes the second refusal for a further event of the first.
// spec 2.8, 3.13.3
TEST_P(ClientPatternsTest, APutThatIsRefusedTwiceIsReportedTwice) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.pt_options = PTL_PT_FLOWCTRL});
    InitiatorSide initiator(pair);
    for (int attempt = 0; attempt < 2; ++attempt) {
      pair.on_initiator(
          [&] { initiator.put_and_wait({.length = 8, .user_ptr = tag(3)}, PTL_NI_PT_DISABLED); });
      pair.on_target([&] {
        target.events.expect(PTL_EVENT_PT_DISABLED);
        must(PtlPTEnable(pair.ni(), default_pt_index));
      });
    }
    pair.on_target([&] { target.append(target.entry(PTL_ME_OP_PUT)); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8, .user_ptr = tag(3)}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect_empty();
    });
  });
}

// The BTL gives fragments above its eager limit match bits that fit nothing but an entry of length
// zero, without events, on the overflow list. The acknowledgment says that nothing was kept; the BTL
// does not look.
// spec 3.12.1, 3.13.3
TEST_P(ClientPatternsTest, APutIntoAnEntryOfNoLengthKeepsNothing) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.pt_options = PTL_PT_ONLY_TRUNCATE});
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      EntrySpec sink =
          target.entry(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE);
      sink.start = nullptr;
      sink.length = 0;
      target.append(sink, PTL_OVERFLOW_LIST);
    });
    pair.on_initiator([&] {
      const SendAndAck events = initiator.put_and_wait({.length = 3000});
      EXPECT_EQ(events.ack.mlength, 0u);
      EXPECT_EQ(events.ack.ptl_list, PTL_OVERFLOW_LIST);
    });
    pair.on_target([&] {
      target.events.expect_silence();
      expect_bytes(target.memory, std::byte{0});
    });
  });
}

// The BTL posts eight blocks that unlink when they are full, and posts each again when it comes to
// its event. What arrives before that matches nothing: without flow control it is dropped, and nobody
// is told. The BTL waits for the acknowledgment.
// spec 2.8, 3.12.1
TEST_P(ClientPatternsTest, WhatArrivesWhenAllBlocksAreFullIsDroppedInSilence) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr ptl_size_t length = 1000;
    TargetSide target(pair, {.pt_options = PTL_PT_ONLY_TRUNCATE});
    InitiatorSide initiator(pair);
    ptl_sr_value_t dropped_before = 0;
    pair.on_target([&] {
      EntrySpec block = target.entry(PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_MAY_ALIGN);
      block.options |= PTL_ME_EVENT_LINK_DISABLE;
      block.length = 2 * length + 500;
      block.min_free = length;
      target.append(block);
      must(PtlNIStatus(pair.ni(), PTL_SR_DROP_COUNT, &dropped_before));
    });
    pair.on_initiator([&] {
      for (int i = 0; i < 2; ++i) initiator.put_and_wait({.length = length});
      initiator.put({.length = length});
      initiator.source.events.expect(PTL_EVENT_SEND);
      initiator.source.events.expect_silence();
    });
    pair.on_target([&] {
      for (int i = 0; i < 2; ++i) target.events.expect(PTL_EVENT_PUT);
      target.events.expect(PTL_EVENT_AUTO_UNLINK);
      target.events.expect_empty();
      ptl_sr_value_t dropped = 0;
      must(PtlNIStatus(pair.ni(), PTL_SR_DROP_COUNT, &dropped));
      EXPECT_EQ(dropped, dropped_before + 1);
    });
  });
}

}  // namespace
}  // namespace lintel::test

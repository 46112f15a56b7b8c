// Usage that clients rely on although the specification does not promise it. Each test acts as a
// client and shows what the library reports. Most tests imitate the Portals components of Open MPI
// 4.1; docs/porting.md describes the consequences. A failure of these tests is a fault of the
// library.
#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class ClientPatternsTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, ClientPatternsTest, testing::ValuesIn(matching_pairs()), pair_name);

// The MTL sends a long message as one put, into a receive that may be shorter. The event contains
// length and place, and no data remain at the initiator. The MTL then gets the remaining 0 bytes
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
      target.append(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE,
                    {.length = room});
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

// The MTL repeats a message that flow control has refused. If it is refused again, the MTL gets
// another event and has to repeat it once more. The MTL takes the event of the second refusal for a
// further event of the first.
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
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8, .user_ptr = tag(3)}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect_empty();
    });
  });
}

// The BTL sends fragments longer than its eager limit with match bits that only one entry matches:
// one of length zero, without events, on the overflow list. The acknowledgment reports that nothing
// was stored; the BTL ignores it.
// spec 3.12.1, 3.13.3
TEST_P(ClientPatternsTest, APutIntoAnEntryOfNoLengthKeepsNothing) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.pt_options = PTL_PT_ONLY_TRUNCATE});
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      target.append_overflow(
          PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
          {.start = nullptr, .length = 0});
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

// The BTL posts eight blocks that unlink when they are full. It posts each block again when it
// processes its event. A message that arrives before that matches nothing. Without flow control it
// is dropped, and the acknowledgment reports this.
// spec 2.8, 3.12.1
TEST_P(ClientPatternsTest, WhatArrivesWhenAllBlocksAreFullIsAnsweredAsDropped) {
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
      initiator.put_and_wait({.length = length}, PTL_NI_DROPPED);
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

// A SHMEM library counts completed puts with a counter, and reserves one slot of the event queue of
// the same descriptor for each put. It treats any event as the end of a send, and then writes to
// the source again. The sizes cover every way in which a payload is moved.
// spec 3.10.1, 3.13.1, 3.15.1
TEST_P(ClientPatternsTest, ACountedPutTakesOneSlotOfTheEventQueue) {
  struct Series {
    ptl_size_t length;
    uint32_t puts;
  };
  static constexpr Series all_series[] = {{8, 400},     {1024, 300}, {2048, 200}, {8193, 200},
                                          {16384, 100}, {65536, 32}, {1048576, 6}};
  static constexpr std::size_t longest_series_bytes = 6 * 1048576;
  static constexpr ptl_size_t slots = 1024;  // fewer than there are puts
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.bytes = longest_series_bytes, .with_event_queue = false});
    InitiatorSide initiator(pair,
                            {.bytes = 1048576, .options = PTL_MD_EVENT_CT_ACK, .events = slots});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    ptl_size_t puts = 0;
    for (const Series& series : all_series) {
      pair.on_initiator([&] {
        for (uint32_t i = 0; i < series.puts; ++i) {
          fill(initiator.source.memory.first(series.length), i);
          initiator.put(
              {.length = series.length, .remote_offset = i * series.length, .ack = PTL_CT_ACK_REQ});
          initiator.source.events.expect(PTL_EVENT_SEND);
        }
        fill(initiator.source.memory.first(series.length), series.puts);
        puts += series.puts;
        initiator.source.counter.expect(puts);
      });
      pair.on_target([&] {
        for (uint32_t i = 0; i < series.puts; ++i)
          expect_pattern(target.memory.subspan(i * series.length, series.length), i);
      });
    }
    pair.on_initiator([&] {
      ASSERT_GT(puts, slots);
      initiator.source.events.expect_empty();
    });
  });
}

}  // namespace
}  // namespace lintel::test

// PTL_LINTEL_PT_HOLD, an extension: messages without room are held instead of dropped.
#include <portals4_lintel.h>

#include <iterator>
#include <vector>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class HoldTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, HoldTest, testing::ValuesIn(all_pairs()), pair_name);
class HoldOncePerPathTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, HoldOncePerPathTest, testing::ValuesIn(one_pair_per_path()),
                         pair_name);

constexpr ptl_pt_index_t other_pt_index = 6;
constexpr TargetSettings holding{.pt_options = PTL_LINTEL_PT_HOLD, .events = 8192};
constexpr unsigned all_access = PTL_ME_OP_PUT | PTL_ME_OP_GET;

// An entry of the target that takes everything.
TargetSide open_entry(Pair& pair) {
  TargetSide open(pair, {.pt_options = PTL_LINTEL_PT_HOLD, .pt_index = other_pt_index});
  pair.on_target([&] { open.append(open.entry(all_access)); });
  return open;
}

// A reply comes after the message by which the target stops the initiator.
void await_stop(Pair& pair, const InitiatorSide& initiator) {
  initiator.get_and_wait({.length = 8, .pt_index = other_pt_index});
  const ptl_sr_value_t before = pair.interface().status(PTL_SR_LINTEL_STOPPED);
  initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ, .hdr_data = 1});
  EXPECT_GT(pair.interface().status(PTL_SR_LINTEL_STOPPED), before);
}

// spec 2.5, 3.7.1, 3.15
TEST_P(HoldTest, EveryOperationWaitsForAnEntry) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, holding);
    InitiatorSide initiator(pair);
    const Request request{.length = 8};
    pair.on_initiator([&] {
      fill(initiator.source.memory.first(8), 3);
      for (const Operation operation : all_operations) start(initiator, operation, request);
    });
    pair.on_target([&] {
      pair.rank().await_condition("a held message",
                                  [&] { return pair.interface().status(PTL_SR_LINTEL_HELD) >= 1; });
      target.events.expect_silence();
      EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 0);
      target.append(target.entry(all_access));
      for (const Operation operation : all_operations)
        target.events.expect(target_event(operation));
      target.events.expect_empty();
    });
    pair.on_initiator([&] {
      for (int ends = 0; ends < 2;) {  // put and atomic
        const ptl_event_t event = initiator.source.events.next();
        if (event.type != PTL_EVENT_ACK) continue;
        EXPECT_EQ(event.ni_fail_type, PTL_NI_OK);
        ++ends;
      }
      for (int replies = 0; replies < 3; ++replies) initiator.result.events.expect(PTL_EVENT_REPLY);
    });
  });
}

// Sizes of messages that travel in a cell, behind one, in several frames, and by rendezvous.
constexpr ptl_size_t sizes[] = {0, 8, 100, 2000, 5000, 20000};

// spec 2.5, 3.12.1, 3.13.3
TEST_P(HoldTest, NothingIsLostAndTheOrderIsKept) {
  constexpr uint64_t before_answer = 500;
  constexpr uint64_t most = 6000;
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(
        pair, {.bytes = size_t{32} << 20, .pt_options = PTL_LINTEL_PT_HOLD, .events = 8192});
    open_entry(pair);
    InitiatorSide initiator(pair, {.bytes = 20000, .events = 8192});
    uint64_t made = 0;
    pair.on_initiator([&] {
      int code = PTL_OK;
      while (made < most && code != PTL_NO_SPACE) {
        if (made == before_answer)
          initiator.get_and_wait({.length = 8, .pt_index = other_pt_index});
        code = PtlPut(initiator.source.descriptor.handle(), 0, sizes[made % std::size(sizes)],
                      PTL_NO_ACK_REQ, pair.target_id(), default_pt_index, 0, 0, nullptr, made);
        initiator.source.events.drain();
        if (code == PTL_OK) ++made;
      }
      EXPECT_EQ(code, PTL_NO_SPACE) << "nothing stops the initiator";
      EXPECT_GE(made, 1024u);
      pair.rank().publish(1, made);
    });
    made = pair.rank().published<uint64_t>(pair.initiator_rank(), 1);
    pair.on_target([&] {
      // Long messages may end later than those behind them, so their places show the order.
      std::vector<ptl_size_t> places(made + 1, 0);
      for (uint64_t i = 0; i < made; ++i) places[i + 1] = places[i] + sizes[i % std::size(sizes)];
      ASSERT_LE(places[made], target.memory.size());
      target.append(target.entry(PTL_ME_OP_PUT | (pair.matching() ? PTL_ME_MANAGE_LOCAL : 0)));
      for (uint64_t i = 0; i < made; ++i) {
        const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
        ASSERT_LT(event.hdr_data, made);
        ASSERT_NE(places[event.hdr_data], PTL_SIZE_MAX) << "it came twice";
        const ptl_size_t place = pair.matching() ? places[event.hdr_data] : 0;
        EXPECT_EQ(event.start, target.memory.data() + place);
        EXPECT_EQ(event.mlength, sizes[event.hdr_data % std::size(sizes)]);
        places[event.hdr_data] = PTL_SIZE_MAX;
      }
      target.events.expect_empty();
      EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 0);
    });
    pair.on_initiator([&] {
      initiator.put({.length = 0});
      initiator.source.events.skip_to(PTL_EVENT_ACK);
    });
  });
}

// spec 3.10.1
TEST_P(HoldOncePerPathTest, VolatileBuffersMayBeReusedAtOnce) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr int messages = 300;
    constexpr ptl_size_t length = 512;
    TargetSide target(pair, {.bytes = messages * length, .pt_options = PTL_LINTEL_PT_HOLD});
    InitiatorSide initiator(pair, {.options = PTL_MD_VOLATILE, .events = 4096});
    pair.on_initiator([&] {
      for (int i = 0; i < messages; ++i) {
        fill(initiator.source.memory.first(length), i);
        initiator.put({.length = length, .remote_offset = i * length, .ack = PTL_NO_ACK_REQ});
        fill(initiator.source.memory.first(length), 1000);
      }
    });
    pair.on_target([&] {
      target.append(target.entry(PTL_ME_OP_PUT));
      for (int i = 0; i < messages; ++i) {
        target.events.expect(PTL_EVENT_PUT);
        expect_pattern(target.memory.subspan(i * length, length), i);
      }
    });
  });
}

// spec 3.7
TEST_P(HoldTest, OtherEntriesAreNotAffected) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, holding);
    const TargetSide other = open_entry(pair);
    InitiatorSide initiator(pair);
    pair.on_initiator([&] {
      initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ, .hdr_data = 0});
      initiator.source.events.expect(PTL_EVENT_SEND);
      await_stop(pair, initiator);
      for (const Operation operation : all_operations)
        perform(initiator, operation, {.length = 8, .pt_index = other_pt_index});
    });
    pair.on_target([&] {
      other.events.expect(PTL_EVENT_GET);
      for (const Operation operation : all_operations) other.events.expect(target_event(operation));
      target.append(target.entry(PTL_ME_OP_PUT));
      for (uint64_t i = 0; i < 2; ++i) EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).hdr_data, i);
    });
    pair.on_initiator([&] { initiator.source.events.expect(PTL_EVENT_SEND); });
  });
}

// spec 2.5, 3.12.2
TEST_P(HoldTest, TheOverflowListTakesThemInOrder) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr uint64_t messages = 60;
    TargetSide target(pair, {.bytes = 64 * 8, .pt_options = PTL_LINTEL_PT_HOLD, .events = 1024});
    InitiatorSide initiator(pair);
    pair.on_initiator([&] {
      for (uint64_t i = 0; i < messages; ++i)
        initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ, .hdr_data = i});
    });
    pair.on_target([&] {
      target.events.expect_silence();
      EntrySpec block = target.entry(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE);
      target.append(block, PTL_OVERFLOW_LIST);
      for (uint64_t i = 0; i < messages; ++i) {
        target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE));
        const ptl_event_t event = target.events.next();
        EXPECT_TRUE(event.type == PTL_EVENT_PUT || event.type == PTL_EVENT_PUT_OVERFLOW);
        ASSERT_EQ(event.hdr_data, i);
      }
    });
  });
}

// spec 2.8, 3.6.1
TEST_P(HoldTest, MessagesWaitForUnexpectedHeaders) {
  ptl_ni_limits_t desired{};
  desired.max_unexpected_headers = 4;
  PairOptions options;
  options.desired = &desired;
  run_pair(GetParam(), options, [](Pair& pair) {
    constexpr uint64_t messages = 20;
    TargetSide target(pair, holding);
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST);
    });
    pair.on_initiator([&] {
      for (uint64_t i = 0; i < messages; ++i)
        initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ, .hdr_data = i});
    });
    pair.on_target([&] {
      for (uint64_t i = 0; i < messages; ++i) {
        target.append(target.entry(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE));
        const ptl_event_t event = target.events.next();
        EXPECT_TRUE(event.type == PTL_EVENT_PUT || event.type == PTL_EVENT_PUT_OVERFLOW);
        ASSERT_EQ(event.hdr_data, i);
      }
      EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 0);
    });
  });
}

// spec 3.7.2, 3.13.3
TEST_P(HoldTest, FreeingTheEntryEndsWhatIsHeld) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, holding);
    InitiatorSide initiator(pair, {.events = 8192});
    constexpr int messages = 50;
    pair.on_initiator([&] {
      for (int i = 0; i < messages; ++i) initiator.put({.length = 8});
    });
    pair.on_target([&] { must(PtlPTFree(pair.ni(), default_pt_index)); });
    pair.on_initiator([&] {
      for (int ends = 0; ends < messages;) {
        const ptl_event_t event = initiator.source.events.next();
        if (event.type != PTL_EVENT_ACK) continue;
        EXPECT_EQ(event.ni_fail_type, PTL_NI_DROPPED);
        ++ends;
      }
    });
  });
}

// spec 3.7.3, 3.7.4
TEST_P(HoldTest, ADisabledEntryKeepsWhatIsHeld) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, holding);
    open_entry(pair);
    InitiatorSide initiator(pair);
    pair.on_initiator([&] {
      initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ});
      initiator.get_and_wait({.length = 8, .pt_index = other_pt_index});
    });
    pair.on_target([&] {
      must(PtlPTDisable(pair.ni(), default_pt_index));
      target.append(target.entry(PTL_ME_OP_PUT));
      target.events.expect_silence();
      must(PtlPTEnable(pair.ni(), default_pt_index));
      target.events.expect(PTL_EVENT_PUT);
    });
  });
}

// spec 3.16
TEST_P(HoldOncePerPathTest, TriggeredOperationsWaitAsWell) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr uint64_t messages = 40;
    TargetSide target(pair, holding);
    open_entry(pair);
    InitiatorSide initiator(pair);
    pair.on_initiator([&] {
      initiator.put({.length = 8, .ack = PTL_NO_ACK_REQ, .hdr_data = 0});
      await_stop(pair, initiator);
      const Counter counter(pair.ni());
      for (uint64_t i = 0; i < messages; ++i)
        must(PtlTriggeredPut(initiator.source.descriptor.handle(), 0, 8, PTL_NO_ACK_REQ,
                             pair.target_id(), default_pt_index, 0, 0, nullptr, 2 + i,
                             counter.handle(), i + 1));
      counter.set(messages);
    });
    pair.on_target([&] {
      target.append(target.entry(PTL_ME_OP_PUT));
      for (uint64_t i = 0; i < 2 + messages; ++i)
        ASSERT_EQ(target.events.expect(PTL_EVENT_PUT).hdr_data, i);
    });
  });
}

// spec 3.6.3
TEST_P(HoldOncePerPathTest, ClosingTheInterfaceEndsWhatIsHeld) {
  if (GetParam().path == Path::self) return;  // closes the interface of the initiator, too
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, holding);
    open_entry(pair);
    InitiatorSide initiator(pair);
    pair.on_initiator([&] {
      initiator.put({.length = 8});
      initiator.get_and_wait({.length = 8, .pt_index = other_pt_index});
    });
    pair.on_target([&] { pair.interface().close(); });
    pair.on_initiator([&] {
      initiator.source.events.expect(PTL_EVENT_SEND);
      const ptl_event_t event = initiator.source.events.next();
      EXPECT_EQ(event.type, PTL_EVENT_ACK);
      EXPECT_NE(event.ni_fail_type, PTL_NI_OK);
    });
  });
}

// spec 3.7.1
TEST_P(HoldOncePerPathTest, FlowControlIsRefused) {
  run_pair(GetParam(), [](Pair& pair) {
    const EventQueue events(pair.ni());
    ptl_pt_index_t index = 0;
    EXPECT_EQ(PtlPTAlloc(pair.ni(), PTL_LINTEL_PT_HOLD | PTL_PT_FLOWCTRL, events.handle(),
                         PTL_PT_ANY, &index),
              PTL_ARG_INVALID);
  });
}

}  // namespace
}  // namespace lintel::test

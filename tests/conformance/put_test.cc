// PtlPut: the destination of the data, and the events at both ends.
#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class PutTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, PutTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 3.15.2, 3.13.4, 3.13.1
TEST_P(PutTest, DeliversDataAndFillsInEveryField) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append({.start = target.memory.data() + 16,
                     .length = 1000,
                     .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
                     .match_bits = 0x1234},
                    PTL_PRIORITY_LIST, tag(77));
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 1);
      const auto [send, ack] = initiator.put_and_wait({.length = 200,
                                                       .local_offset = 8,
                                                       .remote_offset = 24,
                                                       .match_bits = 0x1234,
                                                       .user_ptr = tag(5),
                                                       .hdr_data = 0xfeedbeefcafe});
      EXPECT_EQ(send.mlength, 200u);
      EXPECT_EQ(send.user_ptr, tag(5));
      EXPECT_EQ(ack.mlength, 200u);
      EXPECT_EQ(ack.remote_offset, 24u);
      EXPECT_EQ(ack.user_ptr, tag(5));
      EXPECT_EQ(ack.ptl_list, PTL_PRIORITY_LIST);
      initiator.source.events.expect_silence();
    });
    pair.on_target([&] {
      expect_target_event(pair, target.events.expect(PTL_EVENT_PUT),
                          {.type = PTL_EVENT_PUT,
                           .start = target.memory.data() + 40,
                           .rlength = 200,
                           .mlength = 200,
                           .remote_offset = 24,
                           .match_bits = 0x1234,
                           .hdr_data = 0xfeedbeefcafe,
                           .user_ptr = tag(77)});
      target.events.expect_empty();
      expect_pattern(target.memory.subspan(40, 200), 1, 8);
      expect_bytes(target.memory.first(40), std::byte{0});
      expect_bytes(target.memory.subspan(240), std::byte{0});
    });
  });
}

// spec 3.15.2
TEST_P(PutTest, ArrivesWholeAtEveryAlignment) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    for (ptl_size_t shift = 0; shift < 9; ++shift) {
      const ptl_size_t length = 61 + shift;
      pair.on_initiator([&] {
        fill(initiator.source.memory, static_cast<uint32_t>(shift));
        initiator.put_and_wait(
            {.length = length, .local_offset = shift, .remote_offset = 2 * shift + 3});
      });
      pair.on_target([&] {
        target.events.expect(PTL_EVENT_PUT);
        expect_pattern(target.memory.subspan(2 * shift + 3, length), static_cast<uint32_t>(shift),
                       shift);
      });
    }
  });
}

// spec 3.11, 3.12
TEST_P(PutTest, OfZeroBytesIsReportedAndTouchesNothing) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(target.entry(PTL_ME_OP_PUT), PTL_PRIORITY_LIST, tag(3)); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 1);
      const auto [send, ack] = initiator.put_and_wait(
          {.length = 0, .local_offset = 4096, .remote_offset = 100, .hdr_data = 9});
      EXPECT_EQ(send.mlength, 0u);
      EXPECT_EQ(ack.mlength, 0u);
    });
    pair.on_target([&] {
      expect_target_event(pair, target.events.expect(PTL_EVENT_PUT),
                          {.type = PTL_EVENT_PUT,
                           .start = target.memory.data() + 100,
                           .remote_offset = 100,
                           .hdr_data = 9,
                           .user_ptr = tag(3)});
      expect_bytes(target.memory, std::byte{0});
    });
  });
}

// spec 3.11, 3.12, 3.13.4, 2.5.1
TEST_P(PutTest, IsTruncatedToTheEntry) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT, {.length = 100}); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 4);
      const auto [send, ack] = initiator.put_and_wait({.length = 300, .remote_offset = 30});
      EXPECT_EQ(send.mlength, 300u);
      EXPECT_EQ(ack.mlength, 70u);
      EXPECT_EQ(ack.remote_offset, 30u);
    });
    pair.on_target([&] {
      const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(event.rlength, 300u);
      EXPECT_EQ(event.mlength, 70u);
      EXPECT_EQ(event.start, target.memory.data() + 30);
      expect_bytes(target.memory.first(30), std::byte{0});
      expect_pattern(target.memory.subspan(30, 70), 4);
      expect_bytes(target.memory.subspan(100), std::byte{0});
    });
  });
}

// spec 3.11, 3.12
TEST_P(PutTest, BeyondTheEntryIsTruncatedToZeroBytes) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT, {.length = 100}); });
    for (const ptl_size_t offset : {ptl_size_t{100}, ptl_size_t{101}, PTL_SIZE_MAX - 5}) {
      pair.on_initiator([&] {
        fill(initiator.source.memory, 4);
        EXPECT_EQ(initiator.put_and_wait({.length = 10, .remote_offset = offset}).ack.mlength, 0u);
      });
      pair.on_target([&] {
        const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
        EXPECT_EQ(event.rlength, 10u);
        EXPECT_EQ(event.mlength, 0u);
        expect_bytes(target.memory, std::byte{0});
      });
    }
  });
}

// spec 3.11, 3.12
TEST_P(PutTest, ToAnEntryWithoutMemoryLeavesAnEvent) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append({.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE}, PTL_PRIORITY_LIST,
                    tag(8));
    });
    pair.on_initiator(
        [&] { EXPECT_EQ(initiator.put_and_wait({.length = 64, .hdr_data = 12}).ack.mlength, 0u); });
    pair.on_target([&] {
      const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(event.rlength, 64u);
      EXPECT_EQ(event.mlength, 0u);
      EXPECT_EQ(event.hdr_data, 12u);
      EXPECT_EQ(event.user_ptr, tag(8));
    });
  });
}

// spec 3.13.2, 3.10.1
TEST_P(PutTest, FromADescriptorWithoutEventQueueIsSilentAtTheInitiator) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 2);
      const Descriptor silent(pair.ni(), initiator.source.memory);
      must(PtlPut(silent.handle(), 0, 50, PTL_ACK_REQ, pair.target_id(), default_pt_index, 0, 0,
                  nullptr, 0));
      initiator.fence();
      initiator.source.events.expect_empty();
    });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      expect_pattern(target.memory.first(50), 2);
    });
  });
}

// spec 3.13.2, 3.7.1
TEST_P(PutTest, ToAPortalWithoutEventQueueIsSilentAtTheTarget) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.with_event_queue = false});
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      target.append(PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, {.counter = target.counter.handle()});
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 2);
      initiator.put_and_wait({.length = 50});
    });
    pair.on_target([&] {
      target.counter.expect(1);
      expect_pattern(target.memory.first(50), 2);
    });
  });
}

// spec 2.6
TEST_P(PutTest, NeverChangesTheBufferThatItSends) {
  run_pair(GetParam(), [](Pair& pair) {
    const std::size_t bytes = 300000;
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 9);
      for (const ptl_size_t length : {ptl_size_t{8}, ptl_size_t{3000}, ptl_size_t{bytes}})
        initiator.put_and_wait({.length = length});
      expect_pattern(initiator.source.memory, 9);
    });
  });
}

// spec 3.15.2, 3.15.1
TEST_P(PutTest, WithoutAcknowledgmentGivesOnlySend) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      initiator.put({.length = 20, .ack = PTL_NO_ACK_REQ, .user_ptr = tag(6)});
      EXPECT_EQ(initiator.source.events.expect(PTL_EVENT_SEND).user_ptr, tag(6));
      initiator.fence();
      initiator.source.events.expect_silence();
    });
    pair.on_target([&] { target.events.expect(PTL_EVENT_PUT); });
  });
}

// spec 3.15.2, 2.1
TEST_P(PutTest, ManyInARowAllArrive) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr ptl_size_t count = 2000;
    TargetSide target(pair, {.bytes = count * 8, .events = count});
    InitiatorSide initiator(
        pair, {.bytes = count * 8, .options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 3);
      for (ptl_size_t i = 0; i < count; ++i) {
        initiator.put({.length = 8,
                       .local_offset = 8 * i,
                       .remote_offset = 8 * i,
                       .ack = PTL_CT_ACK_REQ,
                       .hdr_data = i});
      }
      initiator.source.counter.expect(count);
    });
    pair.on_target([&] {
      for (ptl_size_t i = 0; i < count; ++i)
        EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).hdr_data, i);
      expect_pattern(target.memory, 3);
    });
  });
}

}  // namespace
}  // namespace lintel::test

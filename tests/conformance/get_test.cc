// PtlGet: the source of the data, and the events at both ends.
#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class GetTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, GetTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 3.15.3, 3.13.4, 3.13.1
TEST_P(GetTest, FetchesDataAndFillsInEveryField) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      fill(target.memory, 6);
      target.append({.start = target.memory.data() + 16,
                     .length = 1000,
                     .options = PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE,
                     .match_bits = 0x99},
                    PTL_PRIORITY_LIST, tag(12));
    });
    pair.on_initiator([&] {
      const ptl_event_t reply = initiator.get_and_wait({.length = 200,
                                                        .local_offset = 8,
                                                        .remote_offset = 24,
                                                        .match_bits = 0x99,
                                                        .user_ptr = tag(5)});
      EXPECT_EQ(reply.mlength, 200u);
      EXPECT_EQ(reply.remote_offset, 24u);
      EXPECT_EQ(reply.user_ptr, tag(5));
      EXPECT_EQ(reply.ptl_list, PTL_PRIORITY_LIST);
      expect_pattern(initiator.result.memory.subspan(8, 200), 6, 40);
      expect_bytes(initiator.result.memory.first(8), std::byte{0});
      expect_bytes(initiator.result.memory.subspan(208), std::byte{0});
      initiator.result.events.expect_silence();
    });
    pair.on_target([&] {
      expect_target_event(pair, target.events.expect(PTL_EVENT_GET),
                          {.type = PTL_EVENT_GET,
                           .start = target.memory.data() + 40,
                           .rlength = 200,
                           .mlength = 200,
                           .remote_offset = 24,
                           .match_bits = 0x99,
                           .user_ptr = tag(12)});
      target.events.expect_empty();
      expect_pattern(target.memory, 6);
    });
  });
}

// spec 3.15.3
TEST_P(GetTest, ArrivesWholeAtEveryAlignment) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      fill(target.memory, 6);
      target.append(PTL_ME_OP_GET);
    });
    pair.on_initiator([&] {
      for (ptl_size_t shift = 0; shift < 9; ++shift) {
        initiator.get_and_wait(
            {.length = 61 + shift, .local_offset = shift, .remote_offset = 2 * shift + 3});
        expect_pattern(initiator.result.memory.subspan(shift, 61 + shift), 6, 2 * shift + 3);
      }
    });
  });
}

// spec 3.11, 3.12, 3.13.4
TEST_P(GetTest, IsTruncatedToTheEntry) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      fill(target.memory, 6);
      target.append(PTL_ME_OP_GET, {.length = 100});
    });
    pair.on_initiator([&] {
      const ptl_event_t reply = initiator.get_and_wait({.length = 300, .remote_offset = 30});
      EXPECT_EQ(reply.mlength, 70u);
      expect_pattern(initiator.result.memory.first(70), 6, 30);
      expect_bytes(initiator.result.memory.subspan(70), std::byte{0});
      EXPECT_EQ(initiator.get_and_wait({.length = 8, .remote_offset = 100}).mlength, 0u);
      EXPECT_EQ(initiator.get_and_wait({.length = 8, .remote_offset = PTL_SIZE_MAX}).mlength, 0u);
    });
    pair.on_target([&] {
      const ptl_event_t event = target.events.expect(PTL_EVENT_GET);
      EXPECT_EQ(event.rlength, 300u);
      EXPECT_EQ(event.mlength, 70u);
      EXPECT_EQ(target.events.expect(PTL_EVENT_GET).mlength, 0u);
      EXPECT_EQ(target.events.expect(PTL_EVENT_GET).mlength, 0u);
    });
  });
}

// spec 3.15.3
TEST_P(GetTest, OfZeroBytesIsReported) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_GET); });
    pair.on_initiator([&] {
      const ptl_event_t reply = initiator.get_and_wait({.length = 0, .user_ptr = tag(2)});
      EXPECT_EQ(reply.mlength, 0u);
      EXPECT_EQ(reply.user_ptr, tag(2));
    });
    pair.on_target([&] {
      const ptl_event_t event = target.events.expect(PTL_EVENT_GET);
      EXPECT_EQ(event.rlength, 0u);
      EXPECT_EQ(event.mlength, 0u);
    });
  });
}

// spec 3.15.3, 3.14
TEST_P(GetTest, ReportsThroughCountersWithoutEventQueues) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.with_event_queue = false});
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      fill(target.memory, 6);
      target.append(PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM, {.counter = target.counter.handle()});
    });
    pair.on_initiator([&] {
      const Counter replies(pair.ni());
      const Descriptor counted(pair.ni(), initiator.result.memory, PTL_MD_EVENT_CT_REPLY,
                               PTL_EQ_NONE, replies.handle());
      for (int i = 0; i < 5; ++i) {
        must(PtlGet(counted.handle(), 0, 100, pair.target_id(), default_pt_index, 0, 0, nullptr));
      }
      replies.expect_steady(5);
      expect_pattern(initiator.result.memory.first(100), 6);
    });
    pair.on_target([&] { target.counter.expect_steady(5); });
  });
}

}  // namespace
}  // namespace lintel::test

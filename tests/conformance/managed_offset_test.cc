// Locally managed offsets: placement, min_free, alignment, and the unexpected list.
#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

constexpr unsigned managed_put = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL;

class ManagedOffsetTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, ManagedOffsetTest, testing::ValuesIn(matching_pairs()), pair_name);

// spec 3.12.1, 2.5.2, 3.13.4, 4.2.1
TEST_P(ManagedOffsetTest, MessagesArePackedAndTheRequestedOffsetIsIgnored) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(managed_put); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 2);
      ptl_size_t position = 0;
      for (const ptl_size_t length : {10u, 0u, 33u, 1u, 500u}) {
        const auto [send, ack] = initiator.put_and_wait(
            {.length = length, .local_offset = position, .remote_offset = 3000});
        EXPECT_EQ(ack.remote_offset, position);
        EXPECT_EQ(ack.mlength, length);
        position += length;
      }
    });
    pair.on_target([&] {
      ptl_size_t position = 0;
      for (const ptl_size_t length : {10u, 0u, 33u, 1u, 500u}) {
        const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
        EXPECT_EQ(event.start, target.memory.data() + position);
        EXPECT_EQ(event.mlength, length);
        EXPECT_EQ(event.remote_offset, 3000u) << "the offset that the initiator requested";
        position += length;
      }
      expect_pattern(target.memory.first(position), 2);
      expect_bytes(target.memory.subspan(position), std::byte{0});
    });
  });
}

// spec 3.12.1
TEST_P(ManagedOffsetTest, PutsGetsAndAtomicsMoveTheSameOffset) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(managed_put | PTL_ME_OP_GET); });
    pair.on_initiator([&] {
      ptl_size_t position = 0;
      for (const Operation operation : all_operations) {
        SCOPED_TRACE(name_of(operation));
        EXPECT_EQ(perform(initiator, operation, {.length = 8}).remote_offset, position);
        position += 8;
      }
      EXPECT_EQ(initiator.get_and_wait({.length = 8}).remote_offset, position);
    });
  });
}

// spec 3.12.1, 3.12
TEST_P(ManagedOffsetTest, UnlinksWhenLessThanMinFreeIsLeft) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(target.entry(managed_put, {.length = 100, .min_free = 30}), PTL_PRIORITY_LIST,
                    tag(1));
      target.append(target.entry(PTL_ME_OP_PUT), PTL_PRIORITY_LIST, tag(2));
    });
    const auto put = [&](ptl_size_t length) {
      pair.on_initiator([&] { initiator.put_and_wait({.length = length}); });
    };
    put(60);  // 40 left
    pair.on_target([&] { EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(1)); });
    put(10);  // 30 left: not below
    pair.on_target([&] {
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(1));
      target.events.expect_silence();
    });
    put(1);  // 29 left
    pair.on_target([&] {
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(1));
      EXPECT_EQ(target.events.expect(PTL_EVENT_AUTO_UNLINK).user_ptr, tag(1));
    });
    put(1);
    pair.on_target([&] {
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(2));
      target.events.expect_silence();
    });
  });
}

// spec 3.12.1
TEST_P(ManagedOffsetTest, WithoutMinFreeAFullEntryStays) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(target.entry(managed_put, {.length = 100}), PTL_PRIORITY_LIST, tag(1));
    });
    pair.on_initiator([&] {
      EXPECT_EQ(initiator.put_and_wait({.length = 90}).ack.mlength, 90u);
      EXPECT_EQ(initiator.put_and_wait({.length = 90}).ack.mlength, 10u);
      EXPECT_EQ(initiator.put_and_wait({.length = 90}).ack.mlength, 0u);
    });
    pair.on_target([&] {
      for (int i = 0; i < 3; ++i) target.events.expect(PTL_EVENT_PUT);
      target.events.expect_silence();
    });
  });
}

// spec 3.12.1
TEST_P(ManagedOffsetTest, MinFreeMeansNothingForRemoteOffsets) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT, {.length = 100, .min_free = 90}); });
    pair.on_initiator([&] {
      initiator.put_and_wait({.length = 80});
      initiator.put_and_wait({.length = 80});
    });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect_silence();
    });
  });
}

// spec 3.12.1, 2.5.2
TEST_P(ManagedOffsetTest, NoTruncatePassesWhatDoesNotFitToTheNextEntry) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(target.entry(managed_put | PTL_ME_NO_TRUNCATE, {.length = 100}),
                    PTL_PRIORITY_LIST, tag(1));
      target.append(target.entry(PTL_ME_OP_PUT), PTL_PRIORITY_LIST, tag(2));
    });
    pair.on_initiator([&] {
      for (const ptl_size_t length : {70u, 40u, 30u, 1u, 0u})
        EXPECT_EQ(initiator.put_and_wait({.length = length}).ack.mlength, length);
    });
    pair.on_target([&] {
      for (const uintptr_t taker : {1u, 2u, 1u, 2u, 1u})
        EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(taker));
    });
  });
}

// spec 3.12.1
TEST_P(ManagedOffsetTest, MayAlignLeavesGapsAtMost) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(managed_put | PTL_ME_MAY_ALIGN,
                    {.start = target.memory.data() + 1, .length = 3000});
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 2);
      ptl_size_t end = 0;
      for (const ptl_size_t length : {5u, 70u, 1u, 333u}) {
        const ptl_event_t ack = initiator.put_and_wait({.length = length}).ack;
        EXPECT_EQ(ack.mlength, length);
        EXPECT_GE(ack.remote_offset, end);
        EXPECT_LT(ack.remote_offset, end + 4096);
        end = ack.remote_offset + length;
      }
    });
    pair.on_target([&] {
      const std::byte* base = target.memory.data() + 1;
      const std::byte* end = base;
      for (const ptl_size_t length : {5u, 70u, 1u, 333u}) {
        const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
        const auto* start = static_cast<const std::byte*>(event.start);
        EXPECT_GE(start, end);
        EXPECT_LE(start + length, base + 3000);
        expect_pattern({start, length}, 2);
        end = start + length;
      }
    });
  });
}

// spec 3.12.1, 2.5.2
TEST_P(ManagedOffsetTest, MayAlignNeverCostsTheRoomThatMinFreePromises) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(target.entry(managed_put | PTL_ME_MAY_ALIGN, {.length = 100, .min_free = 30}),
                    PTL_PRIORITY_LIST, tag(1));
    });
    pair.on_initiator([&] {
      initiator.put_and_wait({.length = 65});
      // If the entry is still linked, it has room for these 30 bytes.
      initiator.put({.length = 30});
      initiator.fence();
      const ptl_event_t event = initiator.source.events.skip_to(PTL_EVENT_SEND);
      EXPECT_EQ(event.mlength, 30u);
    });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      const ptl_event_t event = target.events.next();
      if (event.type == PTL_EVENT_PUT) {
        EXPECT_EQ(event.mlength, 30u);
      } else {
        EXPECT_EQ(event.type, PTL_EVENT_AUTO_UNLINK);
      }
    });
  });
}

// spec 3.12.1, 3.12
TEST_P(ManagedOffsetTest, MayAlignDoesNotKeepAFullEntryLinked) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      target.append(target.entry(managed_put | PTL_ME_MAY_ALIGN, {.length = 99, .min_free = 1}),
                    PTL_PRIORITY_LIST, tag(1));
      target.append(target.entry(PTL_ME_OP_PUT), PTL_PRIORITY_LIST, tag(2));
    });
    pair.on_initiator([&] {
      for (int i = 0; i < 200; ++i) initiator.put_and_wait({.length = 1});
    });
    pair.on_target([&] {
      int first = 0;
      ptl_event_t event = target.events.next();
      for (; event.type == PTL_EVENT_PUT && event.user_ptr == tag(1); ++first) {
        EXPECT_EQ(event.mlength, 1u) << "no byte may be lost";
        event = target.events.next();
      }
      EXPECT_EQ(event.type, PTL_EVENT_AUTO_UNLINK);
      EXPECT_LE(first, 99);
      for (int i = first; i < 200; ++i)
        EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(2));
    });
  });
}

class IncrementByUnexpectedTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, IncrementByUnexpectedTest, testing::ValuesIn(matching_pairs()),
                         pair_name);

// Sends messages of these lengths to an overflow entry that stores only their headers.
void leave_headers(Pair& pair, TargetSide& target, InitiatorSide& initiator,
                   std::initializer_list<ptl_size_t> lengths) {
  pair.on_target([&] {
    target.append(
        {.options = PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE},
        PTL_OVERFLOW_LIST);
  });
  pair.on_initiator([&] {
    for (const ptl_size_t length : lengths) initiator.put_and_wait({.length = length});
  });
}

// spec 3.12, 3.12.1, 3.12.2
TEST_P(IncrementByUnexpectedTest, OffsetStartsAfterTheRequestedLengthsOfTheHeaders) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    leave_headers(pair, target, initiator, {10, 20, 30});
    pair.on_target([&] {
      target.append(managed_put | PTL_ME_LOCAL_INC_UH_RLENGTH | PTL_ME_MAY_ALIGN,
                    {.start = target.memory.data() + 1, .length = 1000});
      for (const ptl_size_t length : {10u, 20u, 30u}) {
        const ptl_event_t event = target.events.expect(PTL_EVENT_PUT_OVERFLOW);
        EXPECT_EQ(event.rlength, length);
        EXPECT_EQ(event.mlength, 0u);
      }
    });
    pair.on_initiator(
        [&] { EXPECT_EQ(initiator.put_and_wait({.length = 5}).ack.remote_offset, 60u); });
    pair.on_target(
        [&] { EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).start, target.memory.data() + 61); });
  });
}

// spec 3.12
TEST_P(IncrementByUnexpectedTest, WithoutTheOptionTheOffsetStartsAtZero) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    leave_headers(pair, target, initiator, {10, 20, 30});
    pair.on_target([&] {
      target.append(managed_put, {.length = 50, .min_free = 30});
      for (int i = 0; i < 3; ++i) target.events.expect(PTL_EVENT_PUT_OVERFLOW);
      target.events.expect_silence();
    });
    pair.on_initiator(
        [&] { EXPECT_EQ(initiator.put_and_wait({.length = 5}).ack.remote_offset, 0u); });
  });
}

// spec 3.12.1, 3.12.2
TEST_P(IncrementByUnexpectedTest, StopsWithAutoUnlinkWhenMinFreeIsReached) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    leave_headers(pair, target, initiator, {20, 20, 21, 22});
    pair.on_target([&] {
      EntrySpec spec = target.entry(managed_put | PTL_ME_LOCAL_INC_UH_RLENGTH);
      spec.options &= ~PTL_ME_EVENT_LINK_DISABLE;
      spec.length = 50;
      spec.min_free = 20;
      target.append(spec, PTL_PRIORITY_LIST, tag(9));
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT_OVERFLOW).rlength, 20u);  // 30 left
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT_OVERFLOW).rlength, 20u);  // 10 left
      EXPECT_EQ(target.events.expect(PTL_EVENT_AUTO_UNLINK).user_ptr, tag(9));
      target.events.expect_silence();  // no LINK
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 23}); });
    pair.on_target([&] {
      // The other two headers are still in the list, and the last message is there, too.
      must(pair.interface().search(default_pt_index, {}, PTL_SEARCH_ONLY, nullptr));
      for (const ptl_size_t length : {21u, 22u, 23u})
        EXPECT_EQ(target.events.expect(PTL_EVENT_SEARCH).rlength, length);
      target.events.expect(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
    });
  });
}

// spec 3.12.4, 3.12.1
TEST_P(IncrementByUnexpectedTest, SearchIgnoresTheOption) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    leave_headers(pair, target, initiator, {20, 20, 20, 20});
    pair.on_target([&] {
      EntrySpec spec = target.entry(managed_put | PTL_ME_LOCAL_INC_UH_RLENGTH);
      spec.length = 50;
      spec.min_free = 20;
      must(pair.interface().search(default_pt_index, spec, PTL_SEARCH_ONLY, nullptr));
      for (int i = 0; i < 4; ++i) target.events.expect(PTL_EVENT_SEARCH);
      target.events.expect(PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
      target.events.expect_silence();
    });
  });
}

}  // namespace
}  // namespace lintel::test

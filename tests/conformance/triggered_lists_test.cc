// The extensions PtlTriggeredMEAppend and PtlTriggeredMEUnlink: the effect of the plain calls at a
// threshold.
#include <sys/mman.h>

#include <atomic>
#include <new>
#include <thread>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class TriggeredListsTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, TriggeredListsTest, testing::ValuesIn(matching_pairs()), pair_name);

ptl_me_t open_entry(Pair& pair, TargetSide& target, unsigned options) {
  ptl_me_t entry{};
  entry.start = target.memory.data();
  entry.length = target.memory.size();
  entry.ct_handle = PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.options = PTL_ME_OP_PUT | options;
  entry.match_id = pair.initiator_id();
  return entry;
}

// spec 3.16, 3.12.2
TEST_P(TriggeredListsTest, AnAppendHappensAtItsThreshold) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    ptl_me_t entry{};
    pair.on_target([&] {
      entry = open_entry(pair, target, 0);
      must(PtlTriggeredMEAppend(pair.ni(), default_pt_index, &entry, PTL_PRIORITY_LIST, tag(5),
                                &handle, target.counter.handle(), 2));
      target.counter.add(1);
      target.events.expect_silence();
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}, PTL_NI_DROPPED); });
    pair.on_target([&] {
      EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 1);
      target.counter.add(1);
      EXPECT_EQ(target.events.expect(PTL_EVENT_LINK).user_ptr, tag(5));
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 3);
      initiator.put_and_wait({.length = 100, .local_offset = 0, .remote_offset = 0});
    });
    pair.on_target([&] {
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).user_ptr, tag(5));
      expect_pattern(target.memory.first(100), 3);
      must(PtlMEUnlink(handle));
    });
  });
}

// spec 3.16, 3.12.2
TEST_P(TriggeredListsTest, AnAppendFindsUnexpectedMessages) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append_overflow(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8, .hdr_data = 4}); });
    pair.on_target([&] {
      ptl_me_t entry = open_entry(pair, target, PTL_ME_USE_ONCE);
      ptl_handle_me_t handle = PTL_INVALID_HANDLE;
      must(PtlTriggeredMEAppend(pair.ni(), default_pt_index, &entry, PTL_PRIORITY_LIST, tag(6),
                                &handle, target.counter.handle(), 1));
      target.counter.add(1);
      const ptl_event_t event = target.events.expect(PTL_EVENT_PUT_OVERFLOW);
      EXPECT_EQ(event.user_ptr, tag(6));
      EXPECT_EQ(event.hdr_data, 4u);
      target.events.expect(PTL_EVENT_AUTO_UNLINK);
    });
  });
}

// Programs let a put write fields of the description of an append that waits for the put.
// spec 3.16, 3.12.2
TEST_P(TriggeredListsTest, AnAppendReadsItsDescriptionAtItsThreshold) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    ptl_me_t entry{};
    pair.on_target([&] {
      entry = open_entry(pair, target, 0);
      entry.length = 1;
      entry.match_bits = 0xdead;
      ptl_handle_me_t handle = PTL_INVALID_HANDLE;
      must(PtlTriggeredMEAppend(pair.ni(), default_pt_index, &entry, PTL_PRIORITY_LIST, tag(8),
                                &handle, target.counter.handle(), 1));
      entry.match_bits = 0x1234;
      entry.length = 64;
      target.counter.add(1);
      target.events.expect(PTL_EVENT_LINK);
      entry = {};  // the library has its copy
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 3);
      initiator.put_and_wait({.length = 64, .match_bits = 0x1234});
    });
    pair.on_target([&] {
      const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(event.user_ptr, tag(8));
      EXPECT_EQ(event.mlength, 64u);
      expect_pattern(target.memory.first(64), 3);
    });
  });
}

// spec 3.16, 3.13.1, 3.14.1
TEST_P(TriggeredListsTest, ADescriptionThatIsBadAtTheThresholdIsAFailure) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr size_t page = 4096;
    TargetSide target(pair);
    pair.on_target([&] {
      void* const memory =
          mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(memory, MAP_FAILED);
      Counter counter(pair.ni());
      auto* const entry = new (memory) ptl_me_t(open_entry(pair, target, PTL_ME_EVENT_CT_COMM));
      entry->ct_handle = counter.handle();
      const auto append_at = [&](ptl_size_t threshold, void* user_ptr) {
        ptl_handle_me_t handle = PTL_INVALID_HANDLE;
        must(PtlTriggeredMEAppend(pair.ni(), default_pt_index, entry, PTL_PRIORITY_LIST, user_ptr,
                                  &handle, target.counter.handle(), threshold));
        return handle;
      };
      const auto expect_failure = [&](ptl_handle_me_t handle, const void* user_ptr,
                                      ptl_ni_fail_t reason, ptl_size_t failures) {
        target.counter.add(1);
        EXPECT_EQ(target.events.expect(PTL_EVENT_ERROR, reason).user_ptr, user_ptr);
        counter.expect(0, failures);
        EXPECT_EQ(PTL_ARG_INVALID, PtlMEUnlink(handle));
      };
      ptl_handle_me_t handle = append_at(1, tag(1));
      entry->options |= 1u << 31;
      expect_failure(handle, tag(1), PTL_NI_UNDELIVERABLE, 1);
      entry->options &= ~(1u << 31);

      handle = append_at(2, tag(2));
      entry->ct_handle = pair.ni();
      expect_failure(handle, tag(2), PTL_NI_UNDELIVERABLE, 2);
      entry->ct_handle = counter.handle();

      handle = append_at(3, tag(3));
      const ptl_handle_me_t cancelled = append_at(3, tag(4));
      must(PtlMEUnlink(cancelled));
      ASSERT_EQ(munmap(memory, page), 0);
      expect_failure(handle, tag(3), PTL_NI_SEGV, 3);
      target.events.expect_silence();
      must(PtlPTFree(pair.ni(), default_pt_index));
    });
  });
}

// The call has returned long before, so it cannot report this failure.
// spec 3.16, 3.13.1
TEST_P(TriggeredListsTest, AnAppendThatIsRefusedAtItsThresholdPostsAnError) {
  ptl_ni_limits_t desired{};
  desired.max_list_size = 16;
  PairOptions options;
  options.desired = &desired;
  run_pair(GetParam(), options, [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    ptl_me_t entry{};
    pair.on_target([&] {
      ASSERT_LE(pair.limits().max_list_size, 1000) << "a desired limit of 16 has been ignored";
      entry = open_entry(pair, target,
                         PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_LINK_DISABLE);
      for (int i = 0; i < pair.limits().max_list_size; ++i)
        target.append(PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
      ptl_handle_me_t handle = PTL_INVALID_HANDLE;
      const auto append_at = [&](ptl_size_t threshold) {
        must(PtlTriggeredMEAppend(pair.ni(), default_pt_index, &entry, PTL_PRIORITY_LIST, tag(7),
                                  &handle, target.counter.handle(), threshold));
      };
      append_at(1);
      target.counter.add(1);
      const ptl_event_t event = target.events.expect(PTL_EVENT_ERROR, PTL_NI_UNDELIVERABLE);
      EXPECT_EQ(event.user_ptr, tag(7));
      EXPECT_EQ(event.pt_index, default_pt_index);
      EXPECT_EQ(PTL_ARG_INVALID, PtlMEUnlink(handle));
      append_at(2);
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.counter.add(1);  // there is room now
      target.events.expect_silence();
    });
  });
}

// spec 3.16, 3.12.3
TEST_P(TriggeredListsTest, AnUnlinkHappensAtItsThreshold) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      const ptl_handle_any_t entry = target.append(PTL_ME_OP_PUT);
      must(PtlTriggeredMEUnlink(entry, target.counter.handle(), 1));
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.counter.add(1);
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 8}, PTL_NI_DROPPED); });
    pair.on_target([&] { EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 1); });
  });
}

// spec 3.16, 3.12.3
TEST_P(TriggeredListsTest, UnlinkingBeforeTheThresholdCancelsTheAppend) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    pair.on_target([&] {
      ptl_me_t entry = open_entry(pair, target, 0);
      ptl_handle_me_t handle = PTL_INVALID_HANDLE;
      const auto append_at = [&](ptl_size_t threshold) {
        must(PtlTriggeredMEAppend(pair.ni(), default_pt_index, &entry, PTL_PRIORITY_LIST, nullptr,
                                  &handle, target.counter.handle(), threshold));
      };
      append_at(1);
      const ptl_handle_me_t cancelled = handle;
      must(PtlMEUnlink(cancelled));
      EXPECT_EQ(PTL_ARG_INVALID, PtlMEUnlink(cancelled));
      append_at(2);  // at the former place of the other entry
      EXPECT_NE(PTL_OK, PtlMEUnlink(cancelled));
      target.counter.add(1);
      target.events.expect_silence();
      target.counter.add(1);
      target.events.expect(PTL_EVENT_LINK);
      EXPECT_NE(PTL_OK, PtlMEUnlink(cancelled));
      must(PtlMEUnlink(handle));

      append_at(3);
      must(PtlTriggeredMEUnlink(handle, target.counter.handle(), 3));
      must(PtlMEUnlink(handle));
      append_at(4);
      target.counter.add(1);  // there is no entry to unlink
      target.counter.add(1);
      target.events.expect(PTL_EVENT_LINK);
      must(PtlMEUnlink(handle));

      append_at(5);
      must(PtlMEUnlink(handle));
      must(PtlCTCancelTriggered(target.counter.handle()));
      append_at(6);
      must(PtlMEUnlink(handle));
      target.counter.free();
      must(PtlPTFree(pair.ni(), default_pt_index));
    });
  });
}

// spec 3.16, 3.12.3, 2.9
TEST_P(TriggeredListsTest, UnlinkingRacesWithTheThreshold) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr ptl_size_t rounds = 2000;
    TargetSide target(pair);
    pair.on_target([&] {
      ptl_me_t entry = open_entry(pair, target, PTL_ME_EVENT_LINK_DISABLE);
      std::atomic<ptl_size_t> round{0};
      std::thread mover = start_thread([&] {
        for (ptl_size_t i = 1; i <= rounds; ++i) {
          while (round.load() < i) std::this_thread::yield();
          target.counter.add(1);
        }
      });
      for (ptl_size_t i = 1; i <= rounds; ++i) {
        ptl_handle_me_t handle = PTL_INVALID_HANDLE;
        must(PtlTriggeredMEAppend(pair.ni(), default_pt_index, &entry, PTL_PRIORITY_LIST, nullptr,
                                  &handle, target.counter.handle(), i));
        round.store(i);
        int code = PtlMEUnlink(handle);
        for (; code == PTL_IN_USE; code = PtlMEUnlink(handle)) std::this_thread::yield();
        ASSERT_EQ(code, PTL_OK);
      }
      mover.join();
      target.counter.expect(rounds);
      must(PtlPTFree(pair.ni(), default_pt_index));
    });
  });
}

// spec 3.14.4, 3.14.3
TEST_P(TriggeredListsTest, CancellingAndFreeingDropThem) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    pair.on_target([&] {
      ptl_me_t entry = open_entry(pair, target, 0);
      ptl_handle_me_t handle = PTL_INVALID_HANDLE;
      Counter trigger(pair.ni());
      must(PtlTriggeredMEAppend(pair.ni(), default_pt_index, &entry, PTL_PRIORITY_LIST, nullptr,
                                &handle, trigger.handle(), 1));
      must(PtlCTCancelTriggered(trigger.handle()));
      trigger.add(1);
      must(PtlTriggeredMEAppend(pair.ni(), default_pt_index, &entry, PTL_PRIORITY_LIST, nullptr,
                                &handle, trigger.handle(), 2));
      trigger.free();
      target.events.expect_silence();
      must(PtlPTFree(pair.ni(), default_pt_index));
    });
  });
}

}  // namespace
}  // namespace lintel::test

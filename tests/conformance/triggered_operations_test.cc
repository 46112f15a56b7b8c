// Triggered data movement: every operation waits for its threshold and then has the effect of the
// plain operation.
#include <algorithm>
#include <array>
#include <cstring>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class TriggeredOperationsTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, TriggeredOperationsTest, testing::ValuesIn(all_pairs()), pair_name);

// The triggered form of start().
int start_triggered(Pair& pair, const InitiatorSide& initiator, Operation operation,
                    const Request& r, ptl_handle_ct_t trigger, ptl_size_t threshold) {
  const ptl_handle_md_t source = initiator.source.descriptor.handle();
  const ptl_handle_md_t result = initiator.result.descriptor.handle();
  const ptl_process_t target = pair.target_id();
  switch (operation) {
    case Operation::put:
      return PtlTriggeredPut(source, r.local_offset, r.length, r.ack, target, r.pt_index,
                             r.match_bits, r.remote_offset, r.user_ptr, r.hdr_data, trigger,
                             threshold);
    case Operation::get:
      return PtlTriggeredGet(result, r.local_offset, r.length, target, r.pt_index, r.match_bits,
                             r.remote_offset, r.user_ptr, trigger, threshold);
    case Operation::atomic:
      return PtlTriggeredAtomic(source, r.local_offset, r.length, r.ack, target, r.pt_index,
                                r.match_bits, r.remote_offset, r.user_ptr, r.hdr_data, PTL_SUM,
                                PTL_INT64_T, trigger, threshold);
    case Operation::fetch_atomic:
      return PtlTriggeredFetchAtomic(result, 0, source, r.local_offset, r.length, target,
                                     r.pt_index, r.match_bits, r.remote_offset, r.user_ptr,
                                     r.hdr_data, PTL_SUM, PTL_INT64_T, trigger, threshold);
    case Operation::swap:
      return PtlTriggeredSwap(result, 0, source, r.local_offset, r.length, target, r.pt_index,
                              r.match_bits, r.remote_offset, r.user_ptr, r.hdr_data, nullptr,
                              PTL_SWAP, PTL_INT64_T, trigger, threshold);
  }
  return PTL_FAIL;
}

constexpr unsigned put_and_get = PTL_ME_OP_PUT | PTL_ME_OP_GET;

// spec 3.16, 3.16.1, 3.16.2, 3.16.3, 3.16.4, 3.16.5
TEST_P(TriggeredOperationsTest, NothingLeavesBeforeTheThreshold) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    Counter trigger;
    pair.on_target([&] { target.append(put_and_get); });
    for (const Operation operation : all_operations) {
      SCOPED_TRACE(name_of(operation));
      const Request request{
          .length = 16, .local_offset = 8, .remote_offset = 24, .user_ptr = tag(6), .hdr_data = 7};
      pair.on_target([&] { fill(target.memory, 90); });
      pair.on_initiator([&] {
        trigger = Counter(pair.ni());
        std::ranges::fill(initiator.source.memory, std::byte{0});
        must(start_triggered(pair, initiator, operation, request, trigger.handle(), 3));
        trigger.add(2);
        initiator.fence();
        initiator.source.events.expect_silence();
        initiator.result.events.expect_empty();
      });
      pair.on_target([&] {
        target.events.expect_empty();
        expect_pattern(target.memory, 90);
      });
      pair.on_initiator([&] {
        // The contents of the buffer at the time of the trigger are sent.
        fill(initiator.source.memory, 80);
        trigger.add(1);
        const ptl_event_t last = finish(initiator, operation, request);
        EXPECT_EQ(last.user_ptr, tag(6));
        EXPECT_EQ(last.mlength, 16u);
        EXPECT_EQ(last.remote_offset, 24u);
        if (operation == Operation::get) {
          expect_pattern(initiator.result.memory.subspan(8, 16), 90, 24);
        }
        if (operation == Operation::fetch_atomic || operation == Operation::swap) {
          expect_pattern(initiator.result.memory.first(16), 90, 24);
        }
        trigger.add(10);  // the operation has been triggered, and is not triggered again
        initiator.fence();
        initiator.source.events.expect_silence();
        initiator.result.events.expect_empty();
      });
      pair.on_target([&] {
        expect_target_event(pair, target.events.expect(target_event(operation)),
                            {.type = target_event(operation),
                             .start = target.memory.data() + 24,
                             .rlength = 16,
                             .mlength = 16,
                             .remote_offset = 24,
                             .hdr_data = 7});
        target.events.expect_empty();
        if (operation == Operation::put || operation == Operation::swap) {
          expect_pattern(target.memory.subspan(24, 16), 80, 8);
        }
      });
    }
  });
}

// spec 3.16
TEST_P(TriggeredOperationsTest, AThresholdAlreadyReachedFiresAtOnce) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(put_and_get); });
    for (const Operation operation : all_operations) {
      SCOPED_TRACE(name_of(operation));
      pair.on_initiator([&] {
        const Counter trigger(pair.ni());
        trigger.set(5);
        for (const ptl_size_t threshold : {0u, 4u, 5u}) {
          must(start_triggered(pair, initiator, operation, {.length = 8}, trigger.handle(),
                               threshold));
          finish(initiator, operation, {.length = 8});
        }
      });
    }
  });
}

// spec 3.16, 3.14.8
TEST_P(TriggeredOperationsTest, SettingACounterTriggersToo) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(put_and_get); });
    pair.on_initiator([&] {
      const Counter trigger(pair.ni());
      must(start_triggered(pair, initiator, Operation::put, {.length = 8}, trigger.handle(), 100));
      trigger.set(99);
      initiator.source.events.expect_silence();
      trigger.set(100);
      initiator.expect_send_and_ack();
    });
  });
}

// spec 3.16, C.4
TEST_P(TriggeredOperationsTest, FailuresDoNotTrigger) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(put_and_get); });
    pair.on_initiator([&] {
      const Counter trigger(pair.ni());
      must(start_triggered(pair, initiator, Operation::put, {.length = 8}, trigger.handle(), 2));
      must(PtlCTInc(trigger.handle(), {0, 50}));
      trigger.add(1);
      initiator.source.events.expect_silence();
      trigger.add(1);
      initiator.expect_send_and_ack();
    });
  });
}

// spec 3.16, 3.14, 2.7.3
TEST_P(TriggeredOperationsTest, ArrivingMessagesTriggerWithoutTheApplication) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    TargetSide answers(pair, {.pt_index = 6});
    InitiatorSide initiator(pair);
    // The target forwards data: three counted messages trigger a put of its own.
    Descriptor forwarded;
    pair.on_target([&] {
      target.append(PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, {.counter = target.counter.handle()});
      answers.append(answers.entry(PTL_ME_OP_PUT));
      forwarded = Descriptor(pair.ni(), target.memory);
      must(PtlTriggeredPut(forwarded.handle(), 0, 64, PTL_NO_ACK_REQ, pair.target_id(), 6, 0, 0,
                           nullptr, 55, target.counter.handle(), 3));
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 14);
      for (int i = 0; i < 3; ++i) initiator.put_and_wait({.length = 64});
    });
    pair.on_target([&] {
      EXPECT_EQ(answers.events.expect(PTL_EVENT_PUT).hdr_data, 55u);
      expect_pattern(answers.memory.first(64), 14);
    });
  });
}

// spec 3.16
TEST_P(TriggeredOperationsTest, AcknowledgmentsAndRepliesTriggerTheNextStep) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY});
    pair.on_target([&] {
      fill(target.memory, 33);
      target.append(put_and_get);
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 44);
      // After the acknowledgment of the put, a get of the same data; after its reply, another put.
      must(start_triggered(pair, initiator, Operation::get, {.length = 100},
                           initiator.source.counter.handle(), 1));
      must(start_triggered(pair, initiator, Operation::put,
                           {.length = 8, .remote_offset = 1000, .hdr_data = 3},
                           initiator.result.counter.handle(), 1));
      initiator.put({.length = 100, .hdr_data = 1});
      initiator.result.events.expect(PTL_EVENT_REPLY);
      expect_pattern(initiator.result.memory.first(100), 44);
      for (int i = 0; i < 4; ++i) initiator.source.events.next();
    });
    pair.on_target([&] {
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).hdr_data, 1u);
      target.events.expect(PTL_EVENT_GET);
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).hdr_data, 3u);
    });
  });
}

// spec 3.16, 3.16.1
TEST_P(TriggeredOperationsTest, FireInOrderOfThresholdThenOfPosting) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr std::size_t count = 300;
    TargetSide target(pair, {.events = count});
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_SUCCESS_DISABLE});
    std::mt19937 random(3);  // the same in both processes
    std::vector<ptl_size_t> thresholds;
    for (std::size_t i = 0; i < count; ++i) thresholds.push_back(1 + random() % 40);
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      const Counter trigger(pair.ni());
      for (std::size_t i = 0; i < count; ++i) {
        must(start_triggered(pair, initiator, Operation::put,
                             {.length = 8, .ack = PTL_NO_ACK_REQ, .hdr_data = i}, trigger.handle(),
                             thresholds[i]));
      }
      trigger.add(11);
      trigger.add(1);
      trigger.add(1000);  // by a large amount at once
      initiator.fence();
    });
    pair.on_target([&] {
      std::vector<uint64_t> order(count);
      for (std::size_t i = 0; i < count; ++i) order[i] = i;
      std::ranges::stable_sort(order, {}, [&](uint64_t i) { return thresholds[i]; });
      for (const uint64_t expected : order)
        EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).hdr_data, expected);
    });
  });
}

// spec 3.16.5, 3.15.7
TEST_P(TriggeredOperationsTest, SwapKeepsItsOperand) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      const int64_t old = 5;
      std::memcpy(target.memory.data(), &old, 8);
      target.append(put_and_get);
    });
    pair.on_initiator([&] {
      const int64_t sent = 9;
      std::memcpy(initiator.source.memory.data(), &sent, 8);
      const int64_t operand = 5;
      const Counter trigger(pair.ni());
      must(PtlTriggeredSwap(initiator.result.descriptor.handle(), 0,
                            initiator.source.descriptor.handle(), 0, 8, pair.target_id(),
                            default_pt_index, 0, 0, nullptr, 0, &operand, PTL_CSWAP, PTL_INT64_T,
                            trigger.handle(), 1));
      trigger.add(1);
      initiator.source.events.expect(PTL_EVENT_SEND);
      initiator.result.events.expect(PTL_EVENT_REPLY);
    });
    pair.on_target([&] {
      int64_t now = 0;
      std::memcpy(&now, target.memory.data(), 8);
      EXPECT_EQ(now, 9);
    });
  });
}

// spec 3.16, 3.13.3, 3.6.6
TEST(TriggeredMapTest, ToARankThatHasLeftTheMapTheyAreUndeliverable) {
  run_ranks(1, [](Rank& rank) {
    const Interface interface(rank, matching_logical);
    const EventQueue events(interface.handle());
    const Counter counter(interface.handle());
    const Counter trigger(interface.handle());
    std::array<std::byte, 8> memory{};
    const Descriptor descriptor(interface.handle(), memory,
                                PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_REPLY, events.handle(),
                                counter.handle());
    ptl_process_t map[2] = {interface.physical_id(0), interface.physical_id(0)};
    map[1].phys.pid ^= 1;
    must(PtlSetMap(interface.handle(), 2, map));
    must(PtlTriggeredPut(descriptor.handle(), 0, 8, PTL_ACK_REQ, interface.address(1),
                         default_pt_index, 0, 0, tag(1), 0, trigger.handle(), 1));
    must(PtlTriggeredGet(descriptor.handle(), 0, 8, interface.address(1), default_pt_index, 0, 0,
                         tag(2), trigger.handle(), 2));
    must(PtlSetMap(interface.handle(), 1, map));
    trigger.add(2);
    EXPECT_EQ(events.expect(PTL_EVENT_SEND, PTL_NI_UNDELIVERABLE).user_ptr, tag(1));
    EXPECT_EQ(events.expect(PTL_EVENT_REPLY, PTL_NI_UNDELIVERABLE).user_ptr, tag(2));
    counter.expect(0, 2);
    events.expect_empty();
  });
}

// spec 3.16.1, 3.16.2
TEST_P(TriggeredOperationsTest, LargeOnesArriveWhole) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr std::size_t bytes = 700001;
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] { target.append(put_and_get); });
    pair.on_initiator([&] {
      const Counter trigger(pair.ni());
      must(
          start_triggered(pair, initiator, Operation::put, {.length = bytes}, trigger.handle(), 1));
      fill(initiator.source.memory, 8);
      trigger.add(1);
      initiator.expect_send_and_ack();
      must(
          start_triggered(pair, initiator, Operation::get, {.length = bytes}, trigger.handle(), 2));
      trigger.add(1);
      initiator.result.events.expect(PTL_EVENT_REPLY);
      expect_pattern(initiator.result.memory, 8);
    });
    pair.on_target([&] { expect_pattern(target.memory, 8); });
  });
}

}  // namespace
}  // namespace lintel::test

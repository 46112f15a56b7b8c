// Further properties of atomics: overflow entries, atomicity with respect to the processor and
// other atomics, the two descriptors of a fetch.
#include <atomic>
#include <cstring>

#include <gtest/gtest.h>

#include "operations.h"
#include "support/atomic_oracle.h"

namespace lintel::test {
namespace {

constexpr unsigned put_and_get = PTL_ME_OP_PUT | PTL_ME_OP_GET;

class AtomicMemoryTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, AtomicMemoryTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 3.15.4, C.2
TEST_P(AtomicMemoryTest, OverflowBuffersReceiveTheOperandAsSent) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    for (const Operation operation :
         {Operation::atomic, Operation::fetch_atomic, Operation::swap}) {
      SCOPED_TRACE(name_of(operation));
      ptl_handle_any_t overflow = PTL_INVALID_HANDLE;
      pair.on_target([&] {
        fill(target.memory, 50);
        overflow = target.append_overflow(put_and_get);
      });
      pair.on_initiator([&] {
        fill(initiator.source.memory, 60);
        EXPECT_EQ(perform(initiator, operation, {.length = 24, .remote_offset = 16}).mlength, 24u);
        if (replied(operation)) {
          // The fetch has the effect of a get from the overflow buffer.
          expect_pattern(initiator.result.memory.first(24), 50, 16);
        }
      });
      pair.on_target([&] {
        target.events.expect(target_event(operation));
        expect_pattern(target.memory.first(16), 50);
        expect_pattern(target.memory.subspan(16, 24), 60);
        expect_pattern(target.memory.subspan(40), 50, 40);
        target.append({.options = PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE});
        const ptl_event_t event = target.events.expect(overflow_event(operation));
        EXPECT_EQ(event.start, target.memory.data() + 16);
        EXPECT_EQ(event.atomic_operation, operation == Operation::swap ? PTL_SWAP : PTL_SUM);
        EXPECT_EQ(event.atomic_type, PTL_INT64_T);
        must(pair.interface().unlink(overflow));
      });
    }
  });
}

// Adds one `from_peer` times through Portals, and at the same time `from_processor` times with
// atomic instructions of the processor. No addition may be lost.
template <typename Value>
void expect_coherent(Pair& pair, TargetSide& target, InitiatorSide& initiator,
                     ptl_datatype_t datatype) {
  constexpr int from_peer = 3000;
  constexpr int from_processor = 20000;
  const Value one = 1;
  pair.on_target([&] { std::memset(target.memory.data(), 0, sizeof(Value)); });
  std::thread processor;
  if (pair.is_target()) {
    processor = start_thread([&] {
      std::atomic_ref<Value> counter(*reinterpret_cast<Value*>(target.memory.data()));
      for (int i = 0; i < from_processor; ++i) counter.fetch_add(one);
    });
  }
  if (pair.is_initiator()) {
    std::memcpy(initiator.source.memory.data(), &one, sizeof one);
    const ptl_size_t acks = initiator.source.counter.value().success;
    for (int i = 0; i < from_peer; ++i)
      initiator.atomic({.length = sizeof(Value), .ack = PTL_CT_ACK_REQ}, PTL_SUM, datatype);
    initiator.source.counter.expect(acks + from_peer);
  }
  if (processor.joinable()) processor.join();
  pair.barrier();
  pair.on_target([&] {
    Value sum{};
    std::memcpy(&sum, target.memory.data(), sizeof sum);
    EXPECT_EQ(sum, static_cast<Value>(from_peer + from_processor)) << datatype_name(datatype);
  });
}

// spec 3.15.4, 3.6.1
TEST_P(AtomicMemoryTest, AreAtomicAgainstTheProcessor) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] {
      ASSERT_NE(pair.limits().features & PTL_COHERENT_ATOMICS, 0u);
      target.append(put_and_get | PTL_ME_EVENT_COMM_DISABLE);
    });
    expect_coherent<uint8_t>(pair, target, initiator, PTL_UINT8_T);
    expect_coherent<int16_t>(pair, target, initiator, PTL_INT16_T);
    expect_coherent<int32_t>(pair, target, initiator, PTL_INT32_T);
    expect_coherent<uint64_t>(pair, target, initiator, PTL_UINT64_T);
    expect_coherent<float>(pair, target, initiator, PTL_FLOAT);
    expect_coherent<double>(pair, target, initiator, PTL_DOUBLE);
  });
}

// spec 3.15.4, 3.15.7
TEST_P(AtomicMemoryTest, ConditionalSwapsAreAtomicAgainstTheProcessor) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr int rounds = 300;
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    pair.on_target([&] { target.append(put_and_get | PTL_ME_EVENT_COMM_DISABLE); });
    // A spin lock at offset 0 protects a plain counter at offset 64. The initiator takes it through
    // Portals, the target directly.
    std::thread processor;
    if (pair.is_target()) {
      processor = start_thread([&] {
        std::atomic_ref<uint64_t> lock(*reinterpret_cast<uint64_t*>(target.memory.data()));
        auto* counter = reinterpret_cast<volatile uint64_t*>(target.memory.data() + 64);
        for (int i = 0; i < rounds; ++i) {
          uint64_t free = 0;
          while (!lock.compare_exchange_strong(free, 1)) {
            free = 0;
            std::this_thread::yield();
          }
          *counter = *counter + 1;
          lock.store(0);
        }
      });
    }
    if (pair.is_initiator()) {
      auto* sent = reinterpret_cast<uint64_t*>(initiator.source.memory.data());
      auto* fetched = reinterpret_cast<uint64_t*>(initiator.result.memory.data());
      for (int i = 0; i < rounds; ++i) {
        const uint64_t free = 0;
        *sent = 2;
        do {
          initiator.swap({.length = 8}, &free, PTL_CSWAP, PTL_UINT64_T);
          initiator.source.events.expect(PTL_EVENT_SEND);
          initiator.result.events.expect(PTL_EVENT_REPLY);
        } while (*fetched != 0);
        initiator.get_and_wait({.length = 8, .remote_offset = 64});
        *sent = *fetched + 1;
        initiator.put_and_wait({.length = 8, .remote_offset = 64});
        *sent = 0;
        initiator.swap({.length = 8}, nullptr, PTL_SWAP, PTL_UINT64_T);
        initiator.source.events.expect(PTL_EVENT_SEND);
        initiator.result.events.expect(PTL_EVENT_REPLY);
        EXPECT_EQ(*fetched, 2u) << "another process changed the lock";
      }
    }
    if (processor.joinable()) processor.join();
    pair.barrier();
    pair.on_target([&] {
      uint64_t counter = 0;
      std::memcpy(&counter, target.memory.data() + 64, 8);
      EXPECT_EQ(counter, 2u * rounds);
    });
  });
}

// spec 3.15.6, 3.15.7
TEST_P(AtomicMemoryTest, EventsOfAFetchGoToTheDescriptorThatTheyConcern) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(
        pair, {.options = PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK});
    pair.on_target([&] { target.append(put_and_get); });
    pair.on_initiator([&] {
      ptl_size_t done = 0;
      for (const Operation operation : {Operation::fetch_atomic, Operation::swap}) {
        start(initiator, operation, {.length = 8, .user_ptr = tag(9)});
        EXPECT_EQ(initiator.source.events.expect(PTL_EVENT_SEND).user_ptr, tag(9));
        EXPECT_EQ(initiator.result.events.expect(PTL_EVENT_REPLY).user_ptr, tag(9));
        ++done;
        initiator.source.counter.expect_steady(done);  // no acknowledgment
        initiator.result.counter.expect_steady(done);
        initiator.source.events.expect_empty();
      }
    });
  });
}

// spec 3.15.6, 3.15.7
TEST_P(AtomicMemoryTest, OneDescriptorMayServeBothDirections) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] {
      fill(target.memory, 2);
      target.append(put_and_get);
    });
    pair.on_initiator([&] {
      const ptl_handle_md_t both = initiator.source.descriptor.handle();
      fill(initiator.source.memory.first(64), 1);
      must(PtlSwap(both, 128, both, 0, 64, pair.target_id(), default_pt_index, 0, 0, nullptr, 0,
                   nullptr, PTL_SWAP, PTL_INT8_T));
      initiator.source.events.expect_all({PTL_EVENT_SEND, PTL_EVENT_REPLY});
      expect_pattern(initiator.source.memory.subspan(128, 64), 2);
    });
    pair.on_target([&] { expect_pattern(target.memory.first(64), 1); });
  });
}

// spec 3.15.8
TEST_P(AtomicMemoryTest, SyncReturns) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 1);
      perform(initiator, Operation::atomic, {.length = 8});
    });
    pair.on_target([&] {
      EXPECT_EQ(PTL_OK, PtlAtomicSync());
      expect_pattern(target.memory.first(8), 1);
    });
  });
}

}  // namespace
}  // namespace lintel::test

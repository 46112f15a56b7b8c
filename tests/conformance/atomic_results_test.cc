// Every atomic function, operation and datatype: the result in the target's memory, the value
// fetched, and the events, in aligned, unaligned and scattered memory.
#include <algorithm>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "operations.h"
#include "support/atomic_oracle.h"

namespace lintel::test {
namespace {

constexpr std::size_t slot_bytes = 256;
constexpr std::size_t most_items = 5;

// One combination, with memory of its own at both ends.
struct Slot {
  AtomicFunction function;
  ptl_op_t operation;
  Datatype datatype;
  std::size_t items;
  std::size_t position;  // of the slot in the memory of either side
  alignas(16) std::byte old_values[slot_bytes]{};
  alignas(16) std::byte sent_values[slot_bytes]{};
  alignas(16) std::byte operand[sizeof(long double) * 2]{};

  [[nodiscard]] std::size_t length() const { return items * datatype.bytes; }
};

// Draws the same slots on both sides.
std::vector<Slot> draw_slots(std::size_t shift) {
  std::mt19937 random(static_cast<uint32_t>(shift) + 1);
  std::vector<Slot> slots;
  for (const AtomicFunction function :
       {AtomicFunction::atomic, AtomicFunction::fetch_atomic, AtomicFunction::swap}) {
    for (const ptl_op_t operation : all_atomic_operations()) {
      for (const Datatype& datatype : all_datatypes()) {
        if (!is_legal(function, operation, datatype)) continue;
        Slot slot{.function = function,
                  .operation = operation,
                  .datatype = datatype,
                  .items = is_single_item(operation) ? 1 : 1 + random() % most_items,
                  .position = slots.size() * slot_bytes + 16 + shift};
        for (std::size_t i = 0; i < slot.items; ++i) {
          draw_item(random, datatype, slot.old_values + i * datatype.bytes);
          draw_item(random, datatype, slot.sent_values + i * datatype.bytes);
        }
        draw_item(random, datatype, slot.operand);
        if (random() % 2 == 0) std::memcpy(slot.operand, slot.old_values, datatype.bytes);
        slots.push_back(slot);
      }
    }
  }
  return slots;
}

void start(const Slot& slot, const InitiatorSide& initiator, Pair& pair, uint64_t number) {
  const ptl_handle_md_t source = initiator.source.descriptor.handle();
  const ptl_handle_md_t result = initiator.result.descriptor.handle();
  switch (slot.function) {
    case AtomicFunction::atomic:
      return must(PtlAtomic(source, slot.position, slot.length(), PTL_ACK_REQ, pair.target_id(),
                            default_pt_index, 0, slot.position, nullptr, number, slot.operation,
                            slot.datatype.type));
    case AtomicFunction::fetch_atomic:
      return must(PtlFetchAtomic(result, slot.position, source, slot.position, slot.length(),
                                 pair.target_id(), default_pt_index, 0, slot.position, nullptr,
                                 number, slot.operation, slot.datatype.type));
    case AtomicFunction::swap:
      return must(PtlSwap(result, slot.position, source, slot.position, slot.length(),
                          pair.target_id(), default_pt_index, 0, slot.position, nullptr, number,
                          slot.operation == PTL_SWAP ? nullptr : slot.operand, slot.operation,
                          slot.datatype.type));
  }
}

std::string describe_slot(const Slot& slot) {
  static constexpr const char* functions[] = {"PtlAtomic", "PtlFetchAtomic", "PtlSwap"};
  return std::string(functions[static_cast<int>(slot.function)]) + " " +
         operation_name(slot.operation) + " " + datatype_name(slot.datatype.type) + " x " +
         std::to_string(slot.items);
}

void expect_result(const Slot& slot, std::span<const std::byte> memory) {
  for (std::size_t i = 0; i < slot.items; ++i) {
    const std::size_t offset = i * slot.datatype.bytes;
    std::byte wanted[sizeof(long double) * 2]{};
    apply_item(slot.operation, slot.datatype, slot.old_values + offset, slot.sent_values + offset,
               slot.operand, wanted);
    EXPECT_TRUE(equal_items(slot.datatype, wanted, memory.data() + slot.position + offset))
        << "item " << i;
  }
  expect_bytes(memory.subspan(slot.position - 8, 8), std::byte{0});
  expect_bytes(memory.subspan(slot.position + slot.length(), 8), std::byte{0});
}

void expect_fetched(const Slot& slot, std::span<const std::byte> memory) {
  for (std::size_t i = 0; i < slot.items; ++i) {
    const std::size_t offset = i * slot.datatype.bytes;
    EXPECT_TRUE(equal_items(slot.datatype, slot.old_values + offset,
                            memory.data() + slot.position + offset))
        << "item " << i;
  }
}

void expect_atomic_event(Pair& pair, const TargetSide& target, const Slot& slot, uint64_t number) {
  const ptl_event_kind_t kind =
      slot.function == AtomicFunction::atomic ? PTL_EVENT_ATOMIC : PTL_EVENT_FETCH_ATOMIC;
  const ptl_event_t event = target.events.expect(kind);
  expect_target_event(pair, event,
                      {.type = kind,
                       .start = target.memory.data() + slot.position,
                       .rlength = slot.length(),
                       .mlength = slot.length(),
                       .remote_offset = slot.position,
                       .hdr_data = number});
  // The event of a difference may contain the operations that it is composed of.
  if (slot.operation != PTL_DIFF) {
    EXPECT_EQ(event.atomic_operation, slot.operation);
  }
  EXPECT_EQ(event.atomic_type, slot.datatype.type);
}

// The layout of the memory at both ends: contiguous, or scatter lists of pieces of this length. No
// item of the target may span two pieces; items of the source may.
struct Layout {
  std::size_t shift = 0;
  std::size_t target_piece_bytes = 0;
  std::size_t source_piece_bytes = 0;
};

std::vector<ptl_iovec_t> cut(std::span<std::byte> memory, std::size_t first, std::size_t piece) {
  std::vector<ptl_iovec_t> pieces{{memory.data(), first}};
  for (std::size_t position = first; position < memory.size(); position += piece)
    pieces.push_back(
        {memory.data() + position, std::min<std::size_t>(piece, memory.size() - position)});
  return pieces;
}

void run_every_combination(const PairKind& kind, const Layout& layout) {
  run_pair(kind, [&](Pair& pair) {
    const std::vector<Slot> slots = draw_slots(layout.shift);
    const std::size_t bytes = (slots.size() + 1) * slot_bytes;
    TargetSide target(pair, {.bytes = bytes, .events = slots.size()});
    InitiatorSide initiator(pair, {.bytes = bytes, .events = 2 * slots.size()});
    std::vector<ptl_iovec_t> target_pieces;
    std::vector<ptl_iovec_t> source_pieces;
    pair.on_target([&] {
      for (const Slot& slot : slots)
        std::memcpy(target.memory.data() + slot.position, slot.old_values, slot.length());
      EntrySpec spec = target.entry(PTL_ME_OP_PUT | PTL_ME_OP_GET);
      if (layout.target_piece_bytes != 0) {
        target_pieces = cut(target.memory, 16 + layout.shift, layout.target_piece_bytes);
        spec.start = target_pieces.data();
        spec.length = target_pieces.size();
        spec.options |= PTL_IOVEC;
      }
      target.append(spec);
    });
    pair.on_initiator([&] {
      for (const Slot& slot : slots)
        std::memcpy(initiator.source.memory.data() + slot.position, slot.sent_values,
                    slot.length());
      if (layout.source_piece_bytes != 0) {
        source_pieces = cut(initiator.source.memory, 1, layout.source_piece_bytes);
        initiator.source.descriptor =
            Descriptor(pair.ni(), {source_pieces.data(), source_pieces.size(), PTL_IOVEC,
                                   initiator.source.events.handle(), PTL_CT_NONE});
      }
      uint64_t number = 0;
      for (const Slot& slot : slots) {
        SCOPED_TRACE(describe_slot(slot));
        start(slot, initiator, pair, number++);
        if (slot.function == AtomicFunction::atomic) {
          EXPECT_EQ(initiator.expect_send_and_ack().ack.mlength, slot.length());
          continue;
        }
        EXPECT_EQ(initiator.source.events.expect(PTL_EVENT_SEND).mlength, slot.length());
        EXPECT_EQ(initiator.result.events.expect(PTL_EVENT_REPLY).mlength, slot.length());
        expect_fetched(slot, initiator.result.memory);
      }
    });
    pair.on_target([&] {
      uint64_t number = 0;
      for (const Slot& slot : slots) {
        SCOPED_TRACE(describe_slot(slot));
        expect_result(slot, target.memory);
        expect_atomic_event(pair, target, slot, number++);
      }
      target.events.expect_empty();
    });
  });
}

class AtomicResultsTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, AtomicResultsTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 3.15.4, 3.15.5, 3.15.6, 3.15.7, 3.13.4
TEST_P(AtomicResultsTest, AlignedMemory) { run_every_combination(GetParam(), {}); }

// spec 3.15.4
TEST_P(AtomicResultsTest, UnalignedMemory) { run_every_combination(GetParam(), {.shift = 1}); }

// spec 3.15.4
TEST_P(AtomicResultsTest, HalfAlignedMemory) { run_every_combination(GetParam(), {.shift = 4}); }

// spec 3.15.4, 3.10.2
TEST_P(AtomicResultsTest, ScatteredTarget) {
  run_every_combination(GetParam(), {.target_piece_bytes = 64});
}

// spec 3.15.4, 3.10.2
TEST_P(AtomicResultsTest, ScatteredSource) {
  run_every_combination(GetParam(), {.source_piece_bytes = 61});
}

// spec 3.15.4
TEST_P(AtomicResultsTest, ConditionalSwapComparesValuesNotPadding) {
  if (std::numeric_limits<long double>::digits != 64) GTEST_SKIP() << "no padding here";
  run_pair(GetParam(), [](Pair& pair) {
    static_assert(sizeof(long double) == 16, "a long double with padding");
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      const long double old = 2.5L;
      std::memset(target.memory.data(), 0x5a, sizeof old);
      std::memcpy(target.memory.data(), &old, 10);
      target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET);
    });
    pair.on_initiator([&] {
      const long double sent = 7.0L;
      std::memcpy(initiator.source.memory.data(), &sent, 10);
      alignas(long double) std::byte operand[sizeof(long double)];
      std::memset(operand, 0xa5, sizeof operand);
      const long double compared = 2.5L;
      std::memcpy(operand, &compared, 10);
      initiator.swap({.length = sizeof(long double)}, operand, PTL_CSWAP, PTL_LONG_DOUBLE);
      initiator.result.events.expect(PTL_EVENT_REPLY);
    });
    pair.on_target([&] {
      long double now = 0;
      std::memcpy(&now, target.memory.data(), sizeof now);
      EXPECT_EQ(now, 7.0L);
    });
  });
}

// spec 3.15.4, 3.6.1
TEST_P(AtomicResultsTest, LongestOperations) {
  run_pair(GetParam(), [](Pair& pair) {
    const ptl_size_t longest = pair.limits().max_atomic_size & ~ptl_size_t{7};
    const ptl_size_t longest_fetch = pair.limits().max_fetch_atomic_size & ~ptl_size_t{7};
    ASSERT_GE(longest, 512u);
    ASSERT_GE(longest_fetch, 512u);
    const std::size_t bytes = std::max(longest, longest_fetch);
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET); });
    pair.on_initiator([&] {
      for (std::size_t i = 0; i < bytes; i += 8) {
        const uint64_t value = i + 1;
        std::memcpy(initiator.source.memory.data() + i, &value, 8);
      }
      initiator.atomic({.length = longest}, PTL_SUM, PTL_UINT64_T);
      EXPECT_EQ(initiator.expect_send_and_ack().ack.mlength, longest);
      initiator.fetch_atomic({.length = longest_fetch}, PTL_SUM, PTL_UINT64_T);
      initiator.source.events.expect(PTL_EVENT_SEND);
      EXPECT_EQ(initiator.result.events.expect(PTL_EVENT_REPLY).mlength, longest_fetch);
      for (std::size_t i = 0; i < longest_fetch; i += 8) {
        uint64_t value = 0;
        std::memcpy(&value, initiator.result.memory.data() + i, 8);
        EXPECT_EQ(value, i < longest ? i + 1 : 0);
      }
    });
    pair.on_target([&] {
      for (std::size_t i = 0; i < bytes; i += 8) {
        uint64_t value = 0;
        std::memcpy(&value, target.memory.data() + i, 8);
        EXPECT_EQ(value, (i + 1) * ((i < longest ? 1u : 0u) + (i < longest_fetch ? 1u : 0u)));
      }
    });
  });
}

}  // namespace
}  // namespace lintel::test

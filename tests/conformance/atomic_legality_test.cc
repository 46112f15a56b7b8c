// Which combinations of function, operation, datatype and length are accepted.
#include <algorithm>

#include <gtest/gtest.h>

#include "operations.h"
#include "support/atomic_oracle.h"

namespace lintel::test {
namespace {

class AtomicLegalityTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, AtomicLegalityTest, testing::ValuesIn(all_pairs()), pair_name);

// One call of the function. The memory at both ends is large enough for every combination.
int call(AtomicFunction function, const Pair& pair, const InitiatorSide& initiator,
         ptl_size_t length, ptl_op_t operation, ptl_datatype_t datatype) {
  static const std::byte operand[2 * sizeof(long double)]{};
  const ptl_handle_md_t source = initiator.source.descriptor.handle();
  const ptl_handle_md_t result = initiator.result.descriptor.handle();
  switch (function) {
    case AtomicFunction::atomic:
      return PtlAtomic(source, 0, length, PTL_ACK_REQ, pair.target_id(), default_pt_index, 0, 0,
                       nullptr, 0, operation, datatype);
    case AtomicFunction::fetch_atomic:
      return PtlFetchAtomic(result, 0, source, 0, length, pair.target_id(), default_pt_index, 0, 0,
                            nullptr, 0, operation, datatype);
    case AtomicFunction::swap:
      return PtlSwap(result, 0, source, 0, length, pair.target_id(), default_pt_index, 0, 0,
                     nullptr, 0, operand, operation, datatype);
  }
  return PTL_FAIL;
}

constexpr AtomicFunction all_functions[] = {AtomicFunction::atomic, AtomicFunction::fetch_atomic,
                                            AtomicFunction::swap};

void with_open_target(const PairKind& kind,
                      const std::function<void(Pair&, InitiatorSide&)>& check) {
  run_pair(kind, [&](Pair& pair) {
    TargetSide target(pair, {.bytes = 8192});
    InitiatorSide initiator(pair, {.bytes = 8192, .options = PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target(
        [&] { target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] { check(pair, initiator); });
    pair.on_initiator([&] {
      initiator.fence();
      initiator.source.events.expect_empty();
      initiator.result.events.expect_empty();
    });
  });
}

// spec 3.15.4, 3.15.5, 3.15.6, 3.15.7
TEST_P(AtomicLegalityTest, FollowsTheTable) {
  with_open_target(GetParam(), [](Pair& pair, InitiatorSide& initiator) {
    int combinations = 0;
    for (const AtomicFunction function : all_functions) {
      for (const ptl_op_t operation : all_atomic_operations()) {
        for (const Datatype& datatype : all_datatypes()) {
          SCOPED_TRACE(std::to_string(static_cast<int>(function)) + " " +
                       operation_name(operation) + " " + datatype_name(datatype.type));
          const bool legal = is_legal(function, operation, datatype);
          EXPECT_EQ(legal ? PTL_OK : PTL_ARG_INVALID,
                    call(function, pair, initiator, datatype.bytes, operation, datatype.type));
          combinations += legal ? 1 : 0;
        }
      }
    }
    EXPECT_EQ(combinations, 2 * (8 * 11 + 3 * 5 + 3 * 3) + 14 + 2 * 14 + 4 * 11 + 8);
  });
}

// spec 3.15.4
TEST_P(AtomicLegalityTest, UnknownOperationsAndDatatypesAreRefused) {
  with_open_target(GetParam(), [](Pair& pair, InitiatorSide& initiator) {
    for (const AtomicFunction function : all_functions) {
      const ptl_op_t known = function == AtomicFunction::swap ? PTL_SWAP : PTL_SUM;
      for (const unsigned unknown : {19u, 20u, 255u, 256u, ~0u}) {
        EXPECT_EQ(PTL_ARG_INVALID,
                  call(function, pair, initiator, 8, static_cast<ptl_op_t>(unknown), PTL_INT64_T));
        EXPECT_EQ(PTL_ARG_INVALID,
                  call(function, pair, initiator, 8, known, static_cast<ptl_datatype_t>(unknown)));
      }
    }
  });
}

// spec 3.15.5, 3.15.6, 3.15.7, 3.6.1
TEST_P(AtomicLegalityTest, LengthsBeyondTheLimitsAreRefused) {
  with_open_target(GetParam(), [](Pair& pair, InitiatorSide& initiator) {
    const ptl_size_t longest = pair.limits().max_atomic_size;
    const ptl_size_t longest_fetch = pair.limits().max_fetch_atomic_size;
    ASSERT_LT(std::max(longest, longest_fetch), 8192u);
    EXPECT_EQ(PTL_OK, call(AtomicFunction::atomic, pair, initiator, longest, PTL_SUM, PTL_INT8_T));
    EXPECT_EQ(PTL_OK, call(AtomicFunction::fetch_atomic, pair, initiator, longest_fetch, PTL_SUM,
                           PTL_INT8_T));
    EXPECT_EQ(PTL_OK,
              call(AtomicFunction::swap, pair, initiator, longest_fetch, PTL_SWAP, PTL_INT8_T));
    EXPECT_EQ(PTL_ARG_INVALID,
              call(AtomicFunction::atomic, pair, initiator, longest + 1, PTL_SUM, PTL_INT8_T));
    EXPECT_EQ(PTL_ARG_INVALID, call(AtomicFunction::fetch_atomic, pair, initiator,
                                    longest_fetch + 1, PTL_SUM, PTL_INT8_T));
    EXPECT_EQ(PTL_ARG_INVALID,
              call(AtomicFunction::swap, pair, initiator, longest_fetch + 1, PTL_SWAP, PTL_INT8_T));
  });
}

// spec 3.15.4, 3.15.7
TEST_P(AtomicLegalityTest, ConditionalAndMaskedSwapsTakeOneItem) {
  with_open_target(GetParam(), [](Pair& pair, InitiatorSide& initiator) {
    for (const ptl_op_t operation : all_atomic_operations()) {
      if (!is_single_item(operation)) continue;
      for (const Datatype& datatype : all_datatypes()) {
        if (!is_legal(AtomicFunction::swap, operation, datatype)) continue;
        SCOPED_TRACE(operation_name(operation) + " " + datatype_name(datatype.type));
        EXPECT_EQ(PTL_ARG_INVALID, call(AtomicFunction::swap, pair, initiator, 2 * datatype.bytes,
                                        operation, datatype.type));
      }
    }
  });
}

class AtomicLengthTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, AtomicLengthTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 3.15.4
TEST_P(AtomicLengthTest, ALengthThatIsNoMultipleIsRefusedOrCutToWholeItems) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 3);
      const int code = call(AtomicFunction::atomic, pair, initiator, 21, PTL_SUM, PTL_UINT64_T);
      ptl_size_t done = 0;
      if (code != PTL_ARG_INVALID) {
        must(code);
        done = initiator.expect_send_and_ack().ack.mlength;
        EXPECT_TRUE(done == 0 || done == 8 || done == 16) << done;
      }
      pair.rank().publish(1, done);
    });
    pair.on_target([&] {
      const auto done = pair.rank().published<ptl_size_t>(pair.initiator_rank(), 1);
      expect_pattern(target.memory.first(done), 3);  // added to zeros
      expect_bytes(target.memory.subspan(done), std::byte{0});
    });
  });
}

// spec 3.15.4, 3.11, 3.12
TEST_P(AtomicLengthTest, TruncationLeavesWholeItems) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET, {.length = 20}); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 3);
      EXPECT_EQ(perform(initiator, Operation::atomic, {.length = 32}).mlength, 16u);
      EXPECT_EQ(
          perform(initiator, Operation::fetch_atomic, {.length = 8, .remote_offset = 16}).mlength,
          0u);
      fill(initiator.result.memory, 9);
      EXPECT_EQ(perform(initiator, Operation::swap, {.length = 32}).mlength, 16u);
      expect_pattern(initiator.result.memory.first(16), 3);
      expect_pattern(initiator.result.memory.subspan(16), 9, 16);
    });
    pair.on_target([&] {
      const ptl_event_t event = target.events.expect(PTL_EVENT_ATOMIC);
      EXPECT_EQ(event.rlength, 32u);
      EXPECT_EQ(event.mlength, 16u);
      expect_pattern(target.memory.first(16), 3);
      expect_bytes(target.memory.subspan(16), std::byte{0});
    });
  });
}

// spec 3.15.5, 3.15.6, 3.15.7
TEST_P(AtomicLengthTest, OfZeroBytesChangesNothing) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET); });
    for (const Operation operation :
         {Operation::atomic, Operation::fetch_atomic, Operation::swap}) {
      SCOPED_TRACE(name_of(operation));
      pair.on_initiator([&] { EXPECT_EQ(perform(initiator, operation, {}).mlength, 0u); });
      pair.on_target([&] { EXPECT_EQ(target.events.expect(target_event(operation)).mlength, 0u); });
    }
  });
}

}  // namespace
}  // namespace lintel::test

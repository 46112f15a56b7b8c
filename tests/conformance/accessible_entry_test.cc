// PTL_ME_IS_ACCESSIBLE and PTL_LE_IS_ACCESSIBLE: the library may access the memory without checks.
// The results are the same.
#include <cstring>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

constexpr unsigned accessible = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_IS_ACCESSIBLE;

class AccessibleEntryTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, AccessibleEntryTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 3.11.1, 3.12.1, 3.15.2, 3.15.3
TEST_P(AccessibleEntryTest, PutsAndGetsOfAllLengthsArrive) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr std::size_t bytes = 200'000;
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] { target.append(target.entry(accessible)); });
    uint32_t seed = 0;
    for (const ptl_size_t length : {0, 1, 8, 16, 17, 64, 65, 1000, 8192, 8193, 150'000}) {
      ++seed;
      pair.on_initiator([&] {
        fill(initiator.source.memory, seed);
        initiator.put_and_wait({.length = length, .remote_offset = 3});
        perform(initiator, Operation::get, {.length = length, .remote_offset = 3});
        expect_pattern(initiator.result.memory.first(length), seed);
      });
      pair.on_target([&] {
        target.events.expect(PTL_EVENT_PUT);
        target.events.expect(PTL_EVENT_GET);
        expect_pattern(target.memory.subspan(3, length), seed);
      });
    }
  });
}

// spec 3.11.1, 3.12.1, 3.15.4
TEST_P(AccessibleEntryTest, AtomicsCombineItemsWhereverTheyLie) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair);
    pair.on_target([&] { target.append(target.entry(accessible)); });
    for (const ptl_size_t offset : {0, 3}) {
      for (const Operation operation :
           {Operation::atomic, Operation::fetch_atomic, Operation::swap}) {
        SCOPED_TRACE(name_of(operation) + " at " + std::to_string(offset));
        pair.on_target([&] {
          constexpr uint64_t before = 40;
          std::memcpy(target.memory.data() + offset, &before, sizeof before);
        });
        pair.on_initiator([&] {
          constexpr uint64_t operand = 2;
          std::memcpy(initiator.source.memory.data(), &operand, sizeof operand);
          perform(initiator, operation, {.length = 8, .remote_offset = offset});
          uint64_t fetched = 40;
          if (replied(operation))
            std::memcpy(&fetched, initiator.result.memory.data(), sizeof fetched);
          EXPECT_EQ(fetched, 40u);
        });
        pair.on_target([&] {
          target.events.expect(target_event(operation));
          uint64_t after = 0;
          std::memcpy(&after, target.memory.data() + offset, sizeof after);
          EXPECT_EQ(after, operation == Operation::swap ? 2u : 42u);
        });
      }
    }
  });
}

// spec 3.11.1, 3.12.1, 2.5
TEST_P(AccessibleEntryTest, OverflowEntriesKeepUnexpectedMessages) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr ptl_size_t bytes = 100'000;
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] { target.append(target.entry(accessible), PTL_OVERFLOW_LIST); });
    for (const ptl_size_t length : {ptl_size_t{8}, bytes}) {
      pair.on_initiator([&] {
        fill(initiator.source.memory, 7);
        initiator.put_and_wait({.length = length});
      });
      pair.on_target([&] {
        target.events.expect(PTL_EVENT_PUT);
        target.append({.options = accessible | PTL_ME_USE_ONCE});
        const ptl_event_t event = target.events.expect(PTL_EVENT_PUT_OVERFLOW);
        EXPECT_EQ(event.mlength, length);
        EXPECT_EQ(event.start, target.memory.data());
        target.events.expect(PTL_EVENT_AUTO_UNLINK);
        expect_pattern(target.memory.first(length), 7);
      });
    }
  });
}

}  // namespace
}  // namespace lintel::test

// Atomic operations: table 3-4, and the result of every operation on every datatype. Contiguous and
// scattered memory at every alignment, compared with an oracle.
#include "core/operations/atomics.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "atomics_test_support.h"
#include "support/atomic_oracle.h"

namespace lintel {
namespace {

using test::apply_at;
using test::Datatype;
using test::load_value;

TEST(AtomicsTest, CombinationsAreThoseOfTheTable) {
  for (const ptl_op_t operation : test::all_atomic_operations()) {
    for (const Datatype& datatype : test::all_datatypes()) {
      const auto check = [&](AtomicFunction function, test::AtomicFunction same) {
        EXPECT_EQ(atomic_allowed(operation, datatype.type, function),
                  test::is_legal(same, operation, datatype))
            << operation << " on " << datatype.type;
      };
      check(AtomicFunction::atomic, test::AtomicFunction::atomic);
      check(AtomicFunction::fetch_atomic, test::AtomicFunction::fetch_atomic);
      check(AtomicFunction::swap, test::AtomicFunction::swap);
    }
  }
}

TEST(AtomicsTest, UnknownValuesAreNotAllowed) {
  for (const unsigned bad : {19u, 20u, 255u, UINT32_MAX}) {
    EXPECT_FALSE(atomic_allowed(static_cast<ptl_op_t>(bad), PTL_INT32_T, AtomicFunction::atomic));
    EXPECT_FALSE(atomic_allowed(PTL_SUM, static_cast<ptl_datatype_t>(bad), AtomicFunction::atomic));
    EXPECT_EQ(datatype_size(static_cast<ptl_datatype_t>(bad)), 0u);
    EXPECT_FALSE(is_single_item(static_cast<ptl_op_t>(bad)));
  }
  EXPECT_FALSE(
      atomic_allowed(PTL_SUM, static_cast<ptl_datatype_t>(14), AtomicFunction::fetch_atomic));
}

TEST(AtomicsTest, SizesAndSingleItemOperations) {
  for (const Datatype& datatype : test::all_datatypes()) {
    EXPECT_EQ(datatype_size(datatype.type), datatype.bytes) << datatype.type;
    EXPECT_LE(datatype.bytes, max_datatype_size);
  }
  for (const ptl_op_t operation : test::all_atomic_operations())
    EXPECT_EQ(is_single_item(operation), test::is_single_item(operation)) << operation;
}

enum class Place { accessible, guarded, vector };

// One call with random values, `shift` bytes after an alignment of 64, compared with the oracle.
void check_call(std::mt19937& random, ptl_op_t operation, const Datatype& datatype, size_t items,
                size_t shift, Place place, bool fetch) {
  constexpr std::byte filler{0xee};
  constexpr size_t margin = 64;
  const size_t bytes = items * datatype.bytes;
  std::vector<std::byte> memory(2 * margin + bytes + 128, filler);
  auto* aligned = memory.data();
  while (reinterpret_cast<uintptr_t>(aligned) % 64 != 0) ++aligned;
  std::byte* const target = aligned + shift;
  std::vector<std::byte> data(bytes + 1 + shift, filler);
  std::byte operand[max_datatype_size + 1];
  std::byte* const data_start = data.data() + (shift + 1) % 3;
  for (size_t i = 0; i < items; ++i) {
    test::draw_extreme_item(random, datatype, target + i * datatype.bytes);
    test::draw_extreme_item(random, datatype, data_start + i * datatype.bytes);
  }
  // Often equal to the target value: otherwise conditional swaps would rarely happen.
  test::draw_extreme_item(random, datatype, operand + 1);
  if (random() % 2 == 0) std::memcpy(operand + 1, target, datatype.bytes);
  const std::vector<std::byte> before = memory;
  const std::byte* const old_target = before.data() + (target - memory.data());
  std::vector<std::byte> fetched(bytes + 3, filler);
  std::byte* const fetched_start = fetch ? fetched.data() + 1 : nullptr;

  MemoryRegion region;
  std::vector<ptl_iovec_t> elements;
  const uint64_t offset = shift;
  if (place == Place::vector) {
    for (size_t done = 0; done < shift + bytes;) {
      const size_t part =
          std::min<size_t>(random() % (2 * datatype.bytes + 2), shift + bytes - done);
      elements.push_back({aligned + done, part});
      done += part;
    }
    ASSERT_TRUE(region.open(elements.data(), elements.size(), true, random() % 2 == 0));
  } else {
    ASSERT_TRUE(region.open(aligned, shift + bytes, false, place == Place::accessible));
  }
  ASSERT_TRUE(apply_atomic(operation, datatype.type, region, offset, data_start, operand + 1,
                           fetched_start, items));

  for (size_t at = 0; at < bytes; at += datatype.bytes) {
    std::byte wanted[max_datatype_size];
    test::apply_item(operation, datatype, old_target + at, data_start + at, operand + 1, wanted);
    ASSERT_TRUE(test::equal_items(datatype, target + at, wanted))
        << "operation " << operation << ", datatype " << datatype.type << ", byte " << at << " of "
        << bytes << ", shift " << shift << ", place " << static_cast<int>(place);
  }
  if (fetch) {
    ASSERT_EQ(std::memcmp(fetched_start, old_target, bytes), 0);
    ASSERT_EQ(fetched[0], filler);
    ASSERT_EQ(fetched[bytes + 1], filler);
  }
  std::vector<std::byte> outside = memory;
  std::memcpy(outside.data() + (target - memory.data()), old_target, bytes);
  ASSERT_EQ(outside, before) << "wrote beside the target";
}

bool is_legal(ptl_op_t operation, const Datatype& datatype) {
  return test::is_legal(test::AtomicFunction::atomic, operation, datatype) ||
         test::is_legal(test::AtomicFunction::swap, operation, datatype);
}

void check_everywhere(ptl_op_t operation) {
  std::mt19937 random(operation + 1);
  for (const Datatype& datatype : test::all_datatypes()) {
    if (!is_legal(operation, datatype)) continue;
    for (size_t shift = 0; shift < std::max<size_t>(datatype.bytes, 3); ++shift) {
      for (const size_t items : {1u, 2u, 7u}) {
        if (items != 1 && is_single_item(operation)) continue;
        for (const Place place : {Place::accessible, Place::guarded, Place::vector}) {
          for (int round = 0; round < 8; ++round)
            check_call(random, operation, datatype, items, shift, place, round % 2 == 0);
        }
      }
    }
    // Items that extend over two stripes.
    for (size_t shift = 64 - datatype.bytes; shift < 64; ++shift)
      check_call(random, operation, datatype, 1, shift, Place::guarded, true);
  }
}

class AtomicsOperationTest : public testing::TestWithParam<ptl_op_t> {
 protected:
  void SetUp() override { install_fault_handler(); }
};

TEST_P(AtomicsOperationTest, AgreesWithOracleOnAllTypesAndAlignments) {
  check_everywhere(GetParam());
}

INSTANTIATE_TEST_SUITE_P(AllOperations, AtomicsOperationTest,
                         testing::ValuesIn(test::all_atomic_operations().begin(),
                                           test::all_atomic_operations().end()),
                         [](const auto& info) { return "Operation" + std::to_string(info.param); });

TEST(AtomicsTest, NotANumberNeverWinsMinimumOrMaximum) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ptl_op_t operation : {PTL_MIN, PTL_MAX}) {
    double target = 1;
    apply_at(operation, PTL_DOUBLE, &target, &nan, nullptr, nullptr);
    EXPECT_EQ(target, 1);
    target = nan;
    const double data = 5;
    apply_at(operation, PTL_DOUBLE, &target, &data, nullptr, nullptr);
    EXPECT_NE(target, target);
  }
}

// The padding of two equal long doubles may differ.
TEST(AtomicsTest, PaddingOfLongDoubleDoesNotCount) {
  if (std::numeric_limits<long double>::digits != 64) GTEST_SKIP() << "no padding here";
  alignas(16) std::byte target[16];
  std::byte operand[16];
  std::byte data[16];
  const long double one = 1;
  const long double two = 2;
  std::memset(target, 0x11, 16);
  std::memset(operand, 0x22, 16);
  std::memset(data, 0x33, 16);
  std::memcpy(target, &one, 10);
  std::memcpy(operand, &one, 10);
  std::memcpy(data, &two, 10);
  apply_at(PTL_CSWAP, PTL_LONG_DOUBLE, target, data, operand, nullptr);
  EXPECT_EQ(load_value<long double>(target), two);
  EXPECT_EQ(target[15], std::byte{0x11});
}

TEST(AtomicsTest, SwapsKeepThePatternOfNotANumber) {
  const uint64_t signalling = 0x7ff0000000000123;
  alignas(8) uint64_t target = 5;
  apply_at(PTL_SWAP, PTL_DOUBLE, &target, &signalling, nullptr, nullptr);
  EXPECT_EQ(target, signalling);
}

TEST(AtomicsTest, RangesOutsideTheRegionAreRefused) {
  int32_t memory[4] = {1, 2, 3, 4};
  const int32_t data[4] = {5, 5, 5, 5};
  const auto* source = reinterpret_cast<const std::byte*>(data);
  MemoryRegion region;
  ASSERT_TRUE(region.open(memory, 12, false, false));
  EXPECT_FALSE(apply_atomic(PTL_SUM, PTL_INT32_T, region, 8, source, nullptr, nullptr, 2));
  EXPECT_FALSE(apply_atomic(PTL_SUM, PTL_INT32_T, region, UINT64_MAX, source, nullptr, nullptr, 1));
  EXPECT_EQ(memory[2], 3);
  EXPECT_TRUE(apply_atomic(PTL_SUM, PTL_INT32_T, region, 12, source, nullptr, nullptr, 0));
}

}  // namespace
}  // namespace lintel

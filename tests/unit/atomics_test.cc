// Atomic operations: table 3-4, and the result of every operation on every datatype. Contiguous and
// scattered memory at every alignment, compared with an oracle.
#include "core/operations/atomics.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "atomics_test_support.h"
#include "support/atomic_oracle.h"
#include "support/deadlines.h"

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

// Atomic operations of several threads on one item, also together with the processor's own atomics,
// and faults during operations.

using test::apply_at;
using test::for_each_datatype;
using test::load_value;

constexpr unsigned thread_count = 4;

void in_threads(auto body) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < thread_count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

class AtomicsThreadsTest : public testing::Test {
 protected:
  void SetUp() override { install_fault_handler(); }
  static constexpr int rounds = 10000 / test::slowdown;
};

// Each thread adds one `rounds` times. The sum is exact in every type except narrow integers, which
// wrap.
TEST_F(AtomicsThreadsTest, NoSumIsLost) {
  for_each_datatype([]<typename T>(ptl_datatype_t datatype) {
    // Aligned; unaligned within a stripe; across two stripes.
    for (const size_t shift : {size_t{0}, size_t{1}, 64 - sizeof(T) / 2}) {
      alignas(64) std::byte memory[192] = {};
      MemoryRegion region;
      ASSERT_TRUE(region.open(memory, sizeof(memory), false, false));
      const T one{1};
      in_threads([&](unsigned) {
        for (int i = 0; i < rounds; ++i) {
          ASSERT_TRUE(apply_atomic(PTL_SUM, datatype, region, shift,
                                   reinterpret_cast<const std::byte*>(&one), nullptr, nullptr, 1));
        }
      });
      T wanted;
      if constexpr (std::is_integral_v<T>) {
        wanted = static_cast<T>(thread_count * rounds);
      } else {
        wanted = T(thread_count * rounds);
      }
      EXPECT_EQ(load_value<T>(memory + shift), wanted) << datatype << " at " << shift;
    }
  });
}

// Two items overlap, and one of them extends over two stripes. Each thread flips a bit of its own
// an odd number of times.
TEST_F(AtomicsThreadsTest, ItemsThatOverlapExcludeEachOther) {
  alignas(64) std::byte memory[128] = {};
  constexpr size_t shared = 65;
  in_threads([&](unsigned number) {
    const size_t start = number % 2 == 0 ? 60 : shared;
    std::byte data[8] = {};
    data[shared - start] = static_cast<std::byte>(1u << number);
    for (int i = 0; i < 2 * rounds + 1; ++i)
      apply_at(PTL_BXOR, PTL_UINT64_T, memory + start, data, nullptr, nullptr);
  });
  EXPECT_EQ(memory[shared], static_cast<std::byte>((1u << thread_count) - 1));
}

// PTL_COHERENT_ATOMICS: half of the threads use the processor's atomics on the same memory.
TEST_F(AtomicsThreadsTest, FloatComplexIsAtomicAgainstTheProcessor) {
  alignas(8) uint64_t bits = 0;
  const std::complex<float> one{1, -1};
  in_threads([&](unsigned number) {
    for (int i = 0; i < rounds; ++i) {
      if (number % 2 != 0) {
        apply_at(PTL_SUM, PTL_FLOAT_COMPLEX, &bits, &one, nullptr, nullptr);
        continue;
      }
      const std::atomic_ref<uint64_t> word(bits);
      uint64_t seen = word.load();
      uint64_t next = 0;
      do {
        const std::complex<float> sum =
            load_value<std::complex<float>>(reinterpret_cast<std::byte*>(&seen)) + one;
        std::memcpy(&next, &sum, sizeof(next));
      } while (!word.compare_exchange_weak(seen, next));
    }
  });
  const auto total = static_cast<float>(thread_count * rounds);
  const auto value = load_value<std::complex<float>>(reinterpret_cast<std::byte*>(&bits));
  EXPECT_EQ(value, (std::complex<float>{total, -total}));
}

// Items of which all, the first or the last bytes are inaccessible. A valid operation on the same
// stripes follows each; a lock that remained after a fault would block it.
TEST_F(AtomicsThreadsTest, FaultsAreReportedAndLeaveNoLock) {
  constexpr size_t page = 4096;
  void* mapping =
      mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  auto* const middle = static_cast<std::byte*>(mapping) + page;
  ASSERT_EQ(mprotect(static_cast<std::byte*>(mapping), page, PROT_NONE), 0);
  ASSERT_EQ(mprotect(middle + page, page, PROT_NONE), 0);
  const std::byte data[2 * max_datatype_size] = {};
  in_threads([&](unsigned number) {
    std::byte fetched[2 * max_datatype_size];
    MemoryRegion all;
    ASSERT_TRUE(all.open(nullptr, PTL_SIZE_MAX, false, false));
    for_each_datatype([&]<typename T>(ptl_datatype_t datatype) {
      const auto apply = [&](std::byte* at, size_t items) {
        return apply_atomic(number % 2 == 0 ? PTL_SUM : PTL_PROD, datatype, all,
                            reinterpret_cast<uintptr_t>(at), data, nullptr, fetched, items);
      };
      for (size_t before = 1; before <= 70; ++before) {
        EXPECT_EQ(apply(middle - before, 1), false) << datatype << " " << before;
        EXPECT_EQ(apply(middle + page - before, 1), before >= sizeof(T))
            << datatype << " " << before;
        EXPECT_EQ(apply(middle + page - before, 2), before >= 2 * sizeof(T)) << datatype;
        EXPECT_FALSE(apply(middle + page + before, 1));
        EXPECT_FALSE(apply(nullptr, 1));
        EXPECT_TRUE(apply(middle + page / 2 + before, 2));
      }
    });
  });
  munmap(mapping, 3 * page);
}

// The inaccessible page begins in the middle of an item that consists of two pieces.
TEST_F(AtomicsThreadsTest, FaultInsideAScatteredItemIsReported) {
  std::byte good[16] = {};
  ptl_iovec_t elements[] = {{good, 3}, {reinterpret_cast<void*>(40), 2}, {good + 8, 8}};
  MemoryRegion region;
  ASSERT_TRUE(region.open(elements, 3, true, false));
  const std::byte data[8] = {};
  for (uint64_t offset = 0; offset < 5; ++offset) {
    EXPECT_FALSE(apply_atomic(PTL_SUM, PTL_INT64_T, region, offset, data, nullptr, nullptr, 1));
  }
  EXPECT_TRUE(apply_atomic(PTL_SUM, PTL_INT64_T, region, 5, data, nullptr, nullptr, 1));
}

}  // namespace
}  // namespace lintel

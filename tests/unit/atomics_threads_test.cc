// Atomic operations of several threads on one item, also together with the processor's own atomics,
// and faults during operations.
#include <sys/mman.h>

#include <atomic>
#include <complex>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "atomics_test_support.h"
#include "core/operations/atomics.h"
#include "support/deadlines.h"

namespace lintel {
namespace {

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
template <typename T>
void beside_the_processor(ptl_datatype_t datatype, int rounds) {
  alignas(64) T target{};
  const T one{1};
  in_threads([&](unsigned number) {
    for (int i = 0; i < rounds; ++i) {
      if (number % 2 == 0) {
        std::atomic_ref<T>(target).fetch_add(one);
      } else {
        apply_at(PTL_SUM, datatype, &target, &one, nullptr, nullptr);
      }
    }
  });
  EXPECT_EQ(target, static_cast<T>(thread_count * static_cast<unsigned>(rounds))) << datatype;
}

TEST_F(AtomicsThreadsTest, AlignedItemsAreAtomicAgainstTheProcessor) {
  beside_the_processor<uint8_t>(PTL_UINT8_T, rounds);
  beside_the_processor<int16_t>(PTL_INT16_T, rounds);
  beside_the_processor<uint32_t>(PTL_UINT32_T, rounds);
  beside_the_processor<int64_t>(PTL_INT64_T, rounds);
  beside_the_processor<float>(PTL_FLOAT, rounds);
  beside_the_processor<double>(PTL_DOUBLE, rounds);
}

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

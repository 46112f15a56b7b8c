// Memory regions compared with an oracle: the list of the addresses of all their bytes.
#include "core/objects/memory_region.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "support/memory.h"

namespace lintel {
namespace {

class MemoryRegionTest : public testing::Test {
 protected:
  void SetUp() override { install_fault_handler(); }
};

[[nodiscard]] std::byte* at(uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

TEST_F(MemoryRegionTest, ContiguousRangeIsCopiedBothWays) {
  for (const bool accessible : {false, true}) {
    std::array<std::byte, 64> memory{};
    MemoryRegion region;
    ASSERT_TRUE(region.open(memory.data(), memory.size(), false, accessible));
    EXPECT_TRUE(region.is_contiguous());
    EXPECT_EQ(region.is_accessible(), accessible);
    EXPECT_EQ(region.length(), memory.size());
    const std::array<std::byte, 8> source = {std::byte{1}, std::byte{2}, std::byte{3}};
    for (const uint64_t length : {0u, 1u, 3u, 8u}) {
      memory.fill(std::byte{9});
      ASSERT_TRUE(region.write(5, source.data(), length));
      EXPECT_EQ(memory[4], std::byte{9});
      EXPECT_EQ(memory[5 + length], std::byte{9});
      EXPECT_EQ(std::memcmp(memory.data() + 5, source.data(), length), 0);
      std::array<std::byte, 8> back{};
      ASSERT_TRUE(region.read(5, back.data(), length));
      EXPECT_EQ(std::memcmp(back.data(), source.data(), length), 0);
    }
    EXPECT_EQ(region.address(0), memory.data());
    EXPECT_EQ(region.address(64), memory.data() + 64);
    EXPECT_EQ(region.address(70), memory.data() + 70);
  }
}

TEST_F(MemoryRegionTest, RangesOutsideTheRegionAreRefusedUntouched) {
  std::array<std::byte, 32> memory{};
  std::array<std::byte, 32> source{};
  source.fill(std::byte{1});
  ptl_iovec_t elements[] = {{memory.data(), 8}, {memory.data() + 8, 8}};
  for (const bool iovec : {false, true}) {
    MemoryRegion region;
    ASSERT_TRUE(region.open(iovec ? static_cast<void*>(elements) : memory.data(), iovec ? 2 : 16,
                            iovec, false));
    EXPECT_FALSE(region.write(0, source.data(), 17));
    EXPECT_FALSE(region.write(16, source.data(), 1));
    EXPECT_FALSE(region.write(17, source.data(), 0));
    EXPECT_FALSE(region.write(UINT64_MAX, source.data(), 2));
    EXPECT_FALSE(region.write(1, source.data(), UINT64_MAX));
    EXPECT_FALSE(region.read(9, source.data(), 8));
    EXPECT_TRUE(region.write(16, source.data(), 0));
    EXPECT_EQ(std::count(memory.begin(), memory.end(), std::byte{0}), 32);
  }
}

TEST_F(MemoryRegionTest, WholeAddressSpaceIsOneRegion) {
  MemoryRegion region;
  ASSERT_TRUE(region.open(nullptr, PTL_SIZE_MAX, false, false));
  EXPECT_EQ(region.length(), PTL_SIZE_MAX);
  std::array<std::byte, 16> memory{};
  const auto offset = reinterpret_cast<uintptr_t>(memory.data());
  EXPECT_EQ(region.address(offset), memory.data());
  const std::byte value{7};
  EXPECT_TRUE(region.write(offset + 3, &value, 1));
  EXPECT_EQ(memory[3], value);
  std::array<std::byte, 64> back{};
  EXPECT_TRUE(region.read(offset + 3, back.data(), 1));
  EXPECT_EQ(back[0], value);
  for (const uint64_t bad : {uint64_t{0}, uint64_t{64}, PTL_SIZE_MAX / 2, PTL_SIZE_MAX - 64}) {
    EXPECT_FALSE(region.read(bad, back.data(), 64)) << bad;
    EXPECT_FALSE(region.write(bad, back.data(), 8)) << bad;
    EXPECT_TRUE(region.write(bad, back.data(), 0)) << bad;
  }
}

TEST_F(MemoryRegionTest, RegionMayWrapAround) {
  std::array<std::byte, 16> memory{};
  const uintptr_t start = uintptr_t{0} - 4096;  // unmapped
  MemoryRegion region;
  ASSERT_TRUE(region.open(at(start), PTL_SIZE_MAX, false, false));
  const uint64_t offset = reinterpret_cast<uintptr_t>(memory.data()) - start;
  const std::byte value{5};
  EXPECT_TRUE(region.write(offset, &value, 1));
  EXPECT_EQ(memory[0], value);
  EXPECT_EQ(region.address(offset), memory.data());
  std::array<std::byte, 8192> back{};
  EXPECT_FALSE(region.read(0, back.data(), 8192));  // wraps around the end of the address space
}

TEST_F(MemoryRegionTest, EmptyRegionsAcceptNothing) {
  ptl_iovec_t empty[] = {{nullptr, 0}, {at(8), 0}};
  MemoryRegion region;
  const auto check = [&region] {
    EXPECT_EQ(region.length(), 0u);
    std::byte value{};
    EXPECT_TRUE(region.write(0, &value, 0));
    EXPECT_FALSE(region.write(0, &value, 1));
    EXPECT_FALSE(region.read(0, &value, 1));
    Piece piece{};
    uint64_t covered = 1;
    EXPECT_EQ(region.pieces(0, 10, &piece, 1, &covered), 0u);
    EXPECT_EQ(covered, 0u);
    static_cast<void>(region.address(0));
    static_cast<void>(region.address(10));
  };
  check();
  ASSERT_TRUE(region.open(nullptr, 0, false, false));
  check();
  ASSERT_TRUE(region.open(nullptr, 0, true, false));
  check();
  ASSERT_TRUE(region.open(empty, 2, true, false));
  check();
  EXPECT_EQ(region.address(0), at(8));
  region.close();
  region.close();
  check();
}

TEST_F(MemoryRegionTest, ImpossibleVectorsAreRefused) {
  MemoryRegion region;
  ptl_iovec_t too_long[] = {{nullptr, SIZE_MAX}, {nullptr, 1}};
  EXPECT_FALSE(region.open(too_long, 2, true, false));
  EXPECT_TRUE(region.open(too_long, 1, true, false));
  EXPECT_EQ(region.length(), PTL_SIZE_MAX);
  EXPECT_FALSE(region.open(nullptr, 1, true, false));
  EXPECT_FALSE(region.open(at(64), 3, true, false));
  // A vector with elements after the end of the accessible memory.
  const test::GuardedPages page(1);
  auto* const elements = reinterpret_cast<ptl_iovec_t*>(page.accessible().data());
  EXPECT_FALSE(region.open(elements, PTL_SIZE_MAX, true, false));
  EXPECT_FALSE(region.open(elements, UINT64_MAX / sizeof(ptl_iovec_t), true, false));
  EXPECT_EQ(region.length(), 0u);
  EXPECT_TRUE(region.is_contiguous());
}

TEST_F(MemoryRegionTest, FaultInTheMiddleOfAVectorIsReported) {
  std::array<std::byte, 8> good{};
  ptl_iovec_t elements[] = {{good.data(), 4}, {at(32), 4}, {good.data() + 4, 4}};
  MemoryRegion region;
  ASSERT_TRUE(region.open(elements, 3, true, false));
  std::array<std::byte, 12> buffer{};
  EXPECT_TRUE(region.write(0, buffer.data(), 4));
  EXPECT_TRUE(region.write(8, buffer.data(), 4));
  EXPECT_FALSE(region.write(0, buffer.data(), 5));
  EXPECT_FALSE(region.read(7, buffer.data(), 2));
  EXPECT_FALSE(region.read(0, buffer.data(), 12));
}

// A vector of `count` elements over a buffer, in random order and with gaps, and the positions of
// its bytes.
struct Vector {
  std::vector<std::byte> memory;
  std::vector<ptl_iovec_t> elements;
  std::vector<size_t> positions;

  Vector(std::mt19937& random, size_t count, size_t longest) : memory(count * (longest + 2)) {
    std::vector<size_t> slots(count);
    std::iota(slots.begin(), slots.end(), 0);
    std::shuffle(slots.begin(), slots.end(), random);
    for (const size_t slot : slots) {
      const size_t first = slot * (longest + 2);
      const size_t length = random() % (longest + 1);
      elements.push_back({memory.data() + first, length});
      for (size_t i = 0; i < length; ++i) positions.push_back(first + i);
    }
  }
};

TEST_F(MemoryRegionTest, VectorsBehaveLikeContiguousMemory) {
  std::mt19937 random(11);
  for (const size_t count : {1u, 2u, 7u, 8u, 9u, 40u, 1000u}) {
    for (int round = 0; round < 40; ++round) {
      Vector vector(random, count, round % 2 == 0 ? 3 : 20);
      const uint64_t total = vector.positions.size();
      MemoryRegion region;
      ASSERT_TRUE(region.open(vector.elements.data(), count, true, round % 3 == 0));
      EXPECT_FALSE(region.is_contiguous());
      ASSERT_EQ(region.length(), total);
      for (int access = 0; access < 20; ++access) {
        const uint64_t offset = random() % (total + 1);
        const uint64_t length = random() % (total - offset + 1);
        std::vector<std::byte> source(length);
        for (std::byte& byte : source) byte = static_cast<std::byte>(random());
        std::vector<std::byte> expected = vector.memory;
        for (uint64_t i = 0; i < length; ++i) expected[vector.positions[offset + i]] = source[i];
        ASSERT_TRUE(region.write(offset, source.data(), length));
        ASSERT_EQ(vector.memory, expected);
        std::vector<std::byte> back(length);
        ASSERT_TRUE(region.read(offset, back.data(), length));
        ASSERT_EQ(back, source);
        if (offset < total) {
          ASSERT_EQ(region.address(offset), &vector.memory[vector.positions[offset]]);
        }
      }
      const ptl_iovec_t& last = vector.elements.back();
      EXPECT_EQ(region.address(total), static_cast<std::byte*>(last.iov_base) + last.iov_len);
      EXPECT_EQ(region.address(UINT64_MAX), region.address(total));
    }
  }
}

TEST_F(MemoryRegionTest, PiecesCoverTheRangeInOrder) {
  std::mt19937 random(12);
  for (const size_t count : {1u, 3u, 8u, 30u}) {
    Vector vector(random, count, 9);
    const uint64_t total = vector.positions.size();
    MemoryRegion region;
    ASSERT_TRUE(region.open(vector.elements.data(), count, true, false));
    for (int round = 0; round < 500; ++round) {
      const uint64_t offset = random() % (total + 3);
      const uint64_t length = random() % (total + 5);
      const auto most = static_cast<unsigned>(random() % 5);
      std::array<Piece, 5> pieces{};
      uint64_t covered = 12345;
      const unsigned used = region.pieces(offset, length, pieces.data(), most, &covered);
      ASSERT_LE(used, most);
      uint64_t sum = 0;
      for (unsigned i = 0; i < used; ++i) {
        ASSERT_GT(pieces[i].length, 0u);
        for (uint64_t k = 0; k < pieces[i].length; ++k, ++sum)
          ASSERT_EQ(pieces[i].base + k, &vector.memory[vector.positions.at(offset + sum)]);
      }
      ASSERT_EQ(sum, covered);
      const uint64_t wanted = offset < total ? std::min(length, total - offset) : 0;
      ASSERT_LE(covered, wanted);
      if (used < most) {
        ASSERT_EQ(covered, wanted);
      }
    }
  }
}

TEST_F(MemoryRegionTest, PiecesOfContiguousMemoryAreClipped) {
  std::array<std::byte, 10> memory{};
  MemoryRegion region;
  ASSERT_TRUE(region.open(memory.data(), 10, false, false));
  Piece piece{};
  uint64_t covered = 0;
  EXPECT_EQ(region.pieces(4, 3, &piece, 1, &covered), 1u);
  EXPECT_EQ(piece.base, memory.data() + 4);
  EXPECT_EQ(piece.length, 3u);
  EXPECT_EQ(covered, 3u);
  EXPECT_EQ(region.pieces(4, 30, &piece, 1, &covered), 1u);
  EXPECT_EQ(covered, 6u);
  EXPECT_EQ(region.pieces(4, 30, &piece, 0, &covered), 0u);
  EXPECT_EQ(covered, 0u);
  EXPECT_EQ(region.pieces(10, 1, &piece, 1, &covered), 0u);
  EXPECT_EQ(region.pieces(UINT64_MAX, 1, &piece, 1, &covered), 0u);
  EXPECT_EQ(region.pieces(3, 0, &piece, 1, &covered), 0u);
  EXPECT_EQ(covered, 0u);
}

TEST_F(MemoryRegionTest, ReopeningForgetsTheVector) {
  std::mt19937 random(13);
  const Vector vector(random, 50, 8);
  std::array<std::byte, 4> memory{};
  MemoryRegion region;
  ASSERT_TRUE(region.open(vector.elements.data(), 50, true, true));
  ASSERT_TRUE(region.open(memory.data(), 4, false, false));
  EXPECT_TRUE(region.is_contiguous());
  EXPECT_EQ(region.length(), 4u);
  EXPECT_FALSE(region.is_accessible());
  ASSERT_TRUE(region.open(vector.elements.data(), 50, true, true));
  EXPECT_EQ(region.length(), vector.positions.size());
}

}  // namespace
}  // namespace lintel

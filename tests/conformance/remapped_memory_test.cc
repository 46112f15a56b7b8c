// Between two operations, memory belongs to the application. It may unmap it and map other memory
// at the same addresses, and cached information about the former mapping must not matter. Over RDMA
// devices both tests fail if the registration cache is not invalidated.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

constexpr std::size_t bytes = (1u << 20u) + 777;

// Replaces the whole pages of a buffer, in one of several ways. Their contents are lost.
void remap(std::span<std::byte> memory, unsigned way) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t end = (begin + memory.size()) & ~(page - 1);
  begin = (begin + page - 1) & ~(page - 1);
  const std::size_t length = end - begin;
  void* const at = reinterpret_cast<void*>(begin);
  constexpr int protection = PROT_READ | PROT_WRITE;
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  switch (way % 4) {
    case 0:
      ASSERT_EQ(mmap(at, length, protection, flags | MAP_FIXED, -1, 0), at);
      break;
    case 1:
      ASSERT_EQ(madvise(at, length, MADV_DONTNEED), 0);
      break;
    case 2: {
      // Only some pages in the middle.
      constexpr std::uintptr_t some = 65536;
      void* const middle = reinterpret_cast<void*>(begin + length / 4 / page * page);
      ASSERT_EQ(mmap(middle, std::max(page, some), protection, flags | MAP_FIXED, -1, 0), middle);
      break;
    }
    default: {
      // Moves other pages to these addresses.
      void* const others = mmap(nullptr, length, protection, flags, -1, 0);
      ASSERT_NE(others, MAP_FAILED);
      ASSERT_EQ(mremap(others, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, at), at);
    }
  }
}

class RemappedMemoryTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, RemappedMemoryTest, testing::ValuesIn(one_pair_per_path()),
                         pair_name);

// spec 3.10, 3.13.1, 3.15.2
TEST_P(RemappedMemoryTest, PutsSendAndFindWhatIsThereNow) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] { target.append(target.entry(PTL_ME_OP_PUT)); });
    for (unsigned round = 0; round < 12; ++round) {
      pair.on_initiator([&] {
        if (round % 3 != 1) remap(initiator.source.memory, round);
        fill(initiator.source.memory, round + 1);
        initiator.put_and_wait({.length = bytes});
      });
      pair.on_target([&] {
        EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).mlength, bytes);
        expect_pattern(target.memory, round + 1);
        if (round % 3 != 2) remap(target.memory, round / 2);
      });
    }
  });
}

// spec 3.10, 3.13.1, 3.15.3
TEST_P(RemappedMemoryTest, GetsFetchAndStoreWhatIsThereNow) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] { target.append(target.entry(PTL_ME_OP_GET)); });
    for (unsigned round = 0; round < 12; ++round) {
      pair.on_target([&] {
        if (round % 3 != 1) remap(target.memory, round);
        fill(target.memory, round + 1);
      });
      pair.on_initiator([&] {
        if (round % 3 != 2) remap(initiator.result.memory, round / 2);
        EXPECT_EQ(initiator.get_and_wait({.length = bytes}).mlength, bytes);
        expect_pattern(initiator.result.memory, round + 1);
      });
      pair.on_target([&] { target.events.expect(PTL_EVENT_GET); });
    }
  });
}

}  // namespace
}  // namespace lintel::test

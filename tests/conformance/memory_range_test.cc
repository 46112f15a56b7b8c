// Descriptors and entries over the whole address space, and accesses to unmapped memory.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class WholeMemoryTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, WholeMemoryTest, testing::ValuesIn(all_pairs()), pair_name);

ptl_size_t offset_of(const void* address) { return reinterpret_cast<ptl_size_t>(address); }

// spec 3.10, 3.11, 3.12
TEST_P(WholeMemoryTest, DescriptorAndEntryMayCoverEverything) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.bytes = 200000});
    InitiatorSide initiator(pair, {.bytes = 200000});
    pair.on_target([&] {
      ASSERT_NE(pair.limits().features & PTL_TARGET_BIND_INACCESSIBLE, 0u);
      target.append({.start = nullptr,
                     .length = PTL_SIZE_MAX,
                     .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
      pair.rank().publish(1, offset_of(target.memory.data()));
    });
    pair.on_initiator([&] {
      const auto remote = pair.rank().published<ptl_size_t>(pair.target_rank(), 1);
      const Descriptor everything(
          pair.ni(), {nullptr, PTL_SIZE_MAX, 0, initiator.source.events.handle(), PTL_CT_NONE});
      for (const ptl_size_t length : {ptl_size_t{8}, ptl_size_t{1000}, ptl_size_t{200000}}) {
        fill(initiator.source.memory, 3);
        must(PtlPut(everything.handle(), offset_of(initiator.source.memory.data()), length,
                    PTL_ACK_REQ, pair.target_id(), default_pt_index, 0, remote, nullptr, 0));
        const auto [send, ack] = initiator.expect_send_and_ack();
        EXPECT_EQ(ack.mlength, length);
        EXPECT_EQ(ack.remote_offset, remote);
        must(PtlGet(everything.handle(), offset_of(initiator.result.memory.data()), length,
                    pair.target_id(), default_pt_index, 0, remote, nullptr));
        EXPECT_EQ(initiator.source.events.expect(PTL_EVENT_REPLY).mlength, length);
        expect_pattern(initiator.result.memory.first(length), 3);
      }
    });
    pair.on_target([&] {
      const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(event.start, target.memory.data());
      expect_pattern(target.memory, 3);
    });
  });
}

class MissingMemoryTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, MissingMemoryTest, testing::ValuesIn(all_pairs()), pair_name);

constexpr ptl_size_t segv_sizes[] = {1, 8, 64, 500, 4000, 20000, 300000};

// A put whose send or acknowledgment reports PTL_NI_SEGV. No acknowledgment follows a failed send.
void expect_failed_put(InitiatorSide& initiator) {
  const ptl_event_t first = initiator.source.events.next();
  if (first.type == PTL_EVENT_SEND && first.ni_fail_type == PTL_NI_SEGV) {
    initiator.fence();
    initiator.source.events.expect_silence();
    return;
  }
  const ptl_event_t second = initiator.source.events.next();
  const ptl_event_t& ack = first.type == PTL_EVENT_ACK ? first : second;
  EXPECT_EQ(ack.type, PTL_EVENT_ACK) << ack;
  EXPECT_EQ(ack.ni_fail_type, PTL_NI_SEGV) << ack;
}

// spec 3.10, 3.13.3
TEST_P(MissingMemoryTest, PutFromItFailsAtTheInitiator) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.bytes = 300000});
    InitiatorSide initiator(pair);
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] {
      const GuardedPages pages(1);
      for (const ptl_size_t size : segv_sizes) {
        SCOPED_TRACE(size);
        // The second half of the message is inaccessible.
        const Descriptor missing(pair.ni(),
                                 {pages.end() - std::min<ptl_size_t>(size / 2, 4096), size, 0,
                                  initiator.source.events.handle(), PTL_CT_NONE});
        must(PtlPut(missing.handle(), 0, size, PTL_ACK_REQ, pair.target_id(), default_pt_index, 0,
                    0, nullptr, 0));
        expect_failed_put(initiator);
      }
      initiator.put_and_wait({.length = 100});
    });
  });
}

// spec 3.10, 3.14
TEST_P(MissingMemoryTest, PutFromItCountsAsAFailure) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] {
      const GuardedPages pages(1);
      const Descriptor missing(
          pair.ni(), {pages.end(), 8, PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE,
                      initiator.source.counter.handle()});
      must(PtlPut(missing.handle(), 0, 8, PTL_ACK_REQ, pair.target_id(), default_pt_index, 0, 0,
                  nullptr, 0));
      pair.rank().await_condition("waiting for a failure to be counted",
                                  [&] { return initiator.source.counter.value().failure >= 1; });
    });
  });
}

// spec 3.11, 3.12, 3.13.3
TEST_P(MissingMemoryTest, PutIntoItFailsAtBothEnds) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.bytes = 300000, .options = PTL_MD_EVENT_CT_ACK});
    const GuardedPages pages(1);
    ptl_size_t failures = 0;
    for (const ptl_size_t size : segv_sizes) {
      SCOPED_TRACE(size);
      pair.on_target([&] {
        target.append({.start = pages.end() - std::min<ptl_size_t>(size / 2, 4096),
                       .length = size,
                       .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_COMM |
                                  PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                       .counter = target.counter.handle()},
                      PTL_PRIORITY_LIST, tag(55));
      });
      ++failures;
      pair.on_initiator([&] {
        initiator.put_and_wait({.length = size}, PTL_NI_SEGV);
        initiator.source.counter.expect(0, failures);
      });
      pair.on_target([&] {
        const ptl_event_t event = target.events.expect(PTL_EVENT_PUT, PTL_NI_SEGV);
        EXPECT_EQ(event.user_ptr, tag(55));
        EXPECT_EQ(event.rlength, size);
        target.counter.expect(0, failures);
      });
    }
  });
}

// spec 3.11, 3.12, 3.13.3
TEST_P(MissingMemoryTest, GetFromItFailsAtBothEnds) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.bytes = 300000});
    const GuardedPages pages(1);
    for (const ptl_size_t size : segv_sizes) {
      SCOPED_TRACE(size);
      pair.on_target([&] {
        target.append({.start = pages.end() - std::min<ptl_size_t>(size / 2, 4096),
                       .length = size,
                       .options = PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                                  PTL_ME_EVENT_UNLINK_DISABLE});
      });
      pair.on_initiator([&] { initiator.get_and_wait({.length = size}, PTL_NI_SEGV); });
      pair.on_target([&] { target.events.expect(PTL_EVENT_GET, PTL_NI_SEGV); });
    }
  });
}

// spec 3.10, 3.13.3
TEST_P(MissingMemoryTest, GetIntoItFailsAtTheInitiator) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair, {.bytes = 300000});
    InitiatorSide initiator(pair);
    pair.on_target([&] {
      target.append(PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE);
    });
    pair.on_initiator([&] {
      const GuardedPages pages(1);
      for (const ptl_size_t size : segv_sizes) {
        SCOPED_TRACE(size);
        const Descriptor missing(pair.ni(),
                                 {pages.end() - std::min<ptl_size_t>(size / 2, 4096), size, 0,
                                  initiator.result.events.handle(), PTL_CT_NONE});
        must(PtlGet(missing.handle(), 0, size, pair.target_id(), default_pt_index, 0, 0, nullptr));
        initiator.result.events.expect(PTL_EVENT_REPLY, PTL_NI_SEGV);
      }
      initiator.get_and_wait({.length = 100});
    });
  });
}

// spec 3.12, 3.15.4
TEST_P(MissingMemoryTest, AtomicsOnItFailAtBothEnds) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    const GuardedPages pages(1);
    pair.on_target([&] {
      target.append({.start = pages.end(),
                     .length = 64,
                     .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE});
    });
    for (const Operation operation :
         {Operation::atomic, Operation::fetch_atomic, Operation::swap}) {
      SCOPED_TRACE(name_of(operation));
      pair.on_initiator([&] { perform(initiator, operation, {.length = 8}, PTL_NI_SEGV); });
      pair.on_target([&] { target.events.expect(target_event(operation), PTL_NI_SEGV); });
    }
  });
}

// spec 3.11, 3.12, 3.13.1, 3.13.4
TEST_P(MissingMemoryTest, UnexpectedMessagesKeepTheirFailure) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    const GuardedPages pages(1);
    pair.on_target([&] {
      target.append({.start = pages.end(),
                     .length = 64,
                     .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE},
                    PTL_OVERFLOW_LIST);
    });
    pair.on_initiator([&] { initiator.put_and_wait({.length = 64}, PTL_NI_SEGV); });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT, PTL_NI_SEGV);
      target.append({.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_OVERFLOW |
                                PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                     .counter = target.counter.handle()},
                    PTL_PRIORITY_LIST, tag(7));
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT_OVERFLOW, PTL_NI_SEGV).user_ptr, tag(7));
      target.counter.expect(0, 1);
    });
  });
}

// spec 3.12, C.2
TEST_P(MissingMemoryTest, MessagesOfZeroBytesDoNotAccessIt) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = PTL_MD_EVENT_CT_ACK});
    const GuardedPages pages(1);
    pair.on_target([&] {
      target.append({.start = pages.end(),
                     .length = 64,
                     .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                PTL_ME_EVENT_CT_COMM,
                     .counter = target.counter.handle()});
    });
    pair.on_initiator([&] {
      initiator.put_and_wait({.length = 0});
      initiator.get_and_wait({.length = 0});
      const Descriptor missing(
          pair.ni(), {pages.end(), 8, PTL_MD_EVENT_CT_ACK, initiator.source.events.handle(),
                      initiator.source.counter.handle()});
      must(PtlPut(missing.handle(), 3, 0, PTL_ACK_REQ, pair.target_id(), default_pt_index, 0, 5,
                  nullptr, 0));
      initiator.expect_send_and_ack();
      initiator.source.counter.expect(2);
    });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      target.events.expect(PTL_EVENT_GET);
      target.events.expect(PTL_EVENT_PUT);
      target.counter.expect(3);
    });
  });
}

// spec 3.10
TEST_P(MissingMemoryTest, BindingItIsNotAnError) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    const GuardedPages pages(2);
    const std::size_t page = GuardedPages::page_bytes;
    pair.on_target([&] {
      target.append({.start = pages.accessible().data() - page,
                     .length = 4 * page,
                     .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
    });
    pair.on_initiator([&] {
      fill(pages.accessible(), 8);
      const Descriptor wide(pair.ni(), {pages.accessible().data() - page, 4 * page, 0,
                                        initiator.source.events.handle(), PTL_CT_NONE});
      must(PtlPut(wide.handle(), page, 2 * page, PTL_ACK_REQ, pair.target_id(), default_pt_index, 0,
                  page, nullptr, 0));
      initiator.expect_send_and_ack();
    });
    pair.on_target([&] { expect_pattern(pages.accessible(), 8); });
  });
}

// Between two operations, memory belongs to the application. It may unmap it and map other memory
// at the same addresses, and cached information about the former mapping must not matter. Over RDMA
// devices both tests fail if the registration cache is not invalidated.

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
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
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
    pair.on_target([&] { target.append(PTL_ME_OP_GET); });
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

// PTL_ME_IS_ACCESSIBLE and PTL_LE_IS_ACCESSIBLE: the library may access the memory without checks.
// The results are the same.

constexpr unsigned accessible = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_IS_ACCESSIBLE;

class AccessibleEntryTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, AccessibleEntryTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 3.11.1, 3.12.1, 3.15.2, 3.15.3
TEST_P(AccessibleEntryTest, PutsAndGetsOfAllLengthsArrive) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr std::size_t bytes = 200'000;
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] { target.append(accessible); });
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
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(accessible); });
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
    pair.on_target([&] { target.append_overflow(accessible); });
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

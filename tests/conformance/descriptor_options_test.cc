// Memory descriptors: volatile, unordered and unreliable sends; release.
#include <algorithm>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class DescriptorOptionsTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, DescriptorOptionsTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 3.10.1, 3.6.1
TEST_P(DescriptorOptionsTest, VolatileBufferMayChangeRightAfterTheCall) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr ptl_size_t count = 300;
    const ptl_size_t size = std::min<ptl_size_t>(pair.limits().max_volatile_size, 512);
    ASSERT_GE(size, 64u);
    TargetSide target(pair, {.bytes = count * size});
    InitiatorSide initiator(
        pair, {.options = PTL_MD_VOLATILE | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] {
      const std::span<std::byte> buffer = initiator.source.memory.first(size);
      for (uint32_t i = 0; i < count; ++i) {
        fill(buffer, i);
        initiator.put({.length = size, .remote_offset = i * size, .ack = PTL_CT_ACK_REQ});
        std::fill(buffer.begin(), buffer.end(), std::byte{0xee});
      }
      initiator.source.counter.expect(count);
    });
    pair.on_target([&] {
      for (uint32_t i = 0; i < count; ++i) expect_pattern(target.memory.subspan(i * size, size), i);
    });
  });
}

// spec 3.10.1
TEST_P(DescriptorOptionsTest, VolatileAtomicOperandMayChangeRightAfterTheCall) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(
        pair, {.options = PTL_MD_VOLATILE | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] {
      auto* operand = reinterpret_cast<int64_t*>(initiator.source.memory.data());
      for (int64_t i = 1; i <= 500; ++i) {
        *operand = i;
        initiator.atomic({.length = 8, .ack = PTL_CT_ACK_REQ}, PTL_SUM, PTL_INT64_T);
        *operand = 1'000'000;
      }
      initiator.source.counter.expect(500);
    });
    pair.on_target(
        [&] { EXPECT_EQ(*reinterpret_cast<int64_t*>(target.memory.data()), 500 * 501 / 2); });
  });
}

// spec 3.10.1
TEST_P(DescriptorOptionsTest, VolatileDescriptorsSendLongMessagesToo) {
  run_pair(GetParam(), [](Pair& pair) {
    const std::size_t bytes = 300000;
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes, .options = PTL_MD_VOLATILE});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      ASSERT_GT(bytes, pair.limits().max_volatile_size);
      fill(initiator.source.memory, 13);
      initiator.put_and_wait({.length = bytes});
    });
    pair.on_target([&] { expect_pattern(target.memory, 13); });
  });
}

// spec 3.10.1, 2.7.5
TEST_P(DescriptorOptionsTest, UnorderedMessagesAllArriveOnce) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr ptl_size_t count = 500;
    TargetSide target(pair, {.bytes = count * 16, .events = count});
    InitiatorSide initiator(
        pair, {.bytes = count * 16,
               .options = PTL_MD_UNORDERED | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 4);
      for (ptl_size_t i = 0; i < count; ++i) {
        initiator.put({.length = 16,
                       .local_offset = 16 * i,
                       .remote_offset = 16 * i,
                       .ack = PTL_CT_ACK_REQ,
                       .hdr_data = i});
      }
      initiator.source.counter.expect(count);
    });
    pair.on_target([&] {
      std::vector<int> seen(count);
      for (ptl_size_t i = 0; i < count; ++i)
        ++seen.at(target.events.expect(PTL_EVENT_PUT).hdr_data);
      EXPECT_EQ(std::ranges::count(seen, 1), static_cast<std::ptrdiff_t>(count));
      expect_pattern(target.memory, 4);
    });
  });
}

// spec 2.2, 3.10.1
TEST_P(DescriptorOptionsTest, UnreliablePutsCompleteLocallyAndDoNoHarm) {
  run_pair(GetParam(), [](Pair& pair) {
    TargetSide target(pair);
    InitiatorSide initiator(pair, {.options = PTL_MD_UNRELIABLE});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 4);
      for (uintptr_t i = 0; i < 10; ++i) {
        initiator.put({.length = 100, .ack = PTL_NO_ACK_REQ, .user_ptr = tag(i)});
        EXPECT_EQ(initiator.source.events.expect(PTL_EVENT_SEND).user_ptr, tag(i));
      }
      initiator.fence();
    });
    pair.on_target([&] {
      // Messages may be lost, but never partly.
      ptl_event_t event{};
      bool any = false;
      while (PtlEQGet(target.events.handle(), &event) == PTL_OK) {
        EXPECT_EQ(event.type, PTL_EVENT_PUT);
        EXPECT_EQ(event.mlength, 100u);
        any = true;
      }
      if (any) expect_pattern(target.memory.first(100), 4);
    });
  });
}

// spec 3.10.4
TEST_P(DescriptorOptionsTest, ReleaseBeforeTheAckDiscardsIt) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 5);
      initiator.put({.length = 2000});
      ptl_event_t event = initiator.source.events.next();
      while (event.type != PTL_EVENT_SEND) event = initiator.source.events.next();
      initiator.source.descriptor.release();
      // A new descriptor, perhaps with the resources of the old one, is not confused with it.
      const Descriptor next(pair.ni(), initiator.source.memory, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE,
                            initiator.source.counter.handle());
      initiator.fence();
      initiator.source.counter.expect_steady(0);
    });
    pair.on_target([&] {
      target.events.expect(PTL_EVENT_PUT);
      expect_pattern(target.memory.first(2000), 5);
    });
  });
}

// spec 3.10.4, 3.13.2
TEST_P(DescriptorOptionsTest, CanBeReleasedAsSoonAsTheLastEventIsThere) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target(
        [&] { target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] {
      for (int i = 0; i < 1000; ++i) {
        Descriptor once(pair.ni(), initiator.source.memory, 0, initiator.source.events.handle());
        if (i % 3 == 0) {
          must(PtlGet(once.handle(), 0, 64, pair.target_id(), default_pt_index, 0, 0, nullptr));
        } else {
          must(PtlPut(once.handle(), 0, 64, i % 3 == 1 ? PTL_ACK_REQ : PTL_NO_ACK_REQ,
                      pair.target_id(), default_pt_index, 0, 0, nullptr, 0));
        }
        // PTL_EVENT_SEND, PTL_EVENT_ACK or PTL_EVENT_REPLY: with each of them the use of the memory
        // ends.
        ptl_event_t event{};
        must(PtlEQWait(initiator.source.events.handle(), &event));
        once.release();
        initiator.fence();
        initiator.source.events.drain();
      }
    });
  });
}

// spec 3.10.3
TEST_P(DescriptorOptionsTest, KeepsNoReferenceToTheStructureItWasMadeFrom) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 6);
      ptl_md_t md{initiator.source.memory.data(), 100, 0, initiator.source.events.handle(),
                  PTL_CT_NONE};
      const Descriptor descriptor(pair.ni(), md);
      md = {nullptr, 0, ~0u, PTL_INVALID_HANDLE, PTL_INVALID_HANDLE};
      must(PtlPut(descriptor.handle(), 0, 100, PTL_ACK_REQ, pair.target_id(), default_pt_index, 0,
                  0, nullptr, 0));
      initiator.expect_send_and_ack();
    });
    pair.on_target([&] { expect_pattern(target.memory.first(100), 6); });
  });
}

// spec 3.10, 3.10.1
TEST_P(DescriptorOptionsTest, MayOverlapEachOther) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 6);
      const Descriptor inner(pair.ni(), initiator.source.memory.subspan(10, 50), 0,
                             initiator.source.events.handle());
      must(PtlPut(inner.handle(), 5, 20, PTL_ACK_REQ, pair.target_id(), default_pt_index, 0, 0,
                  nullptr, 0));
      initiator.expect_send_and_ack();
    });
    pair.on_target([&] { expect_pattern(target.memory.first(20), 6, 15); });
  });
}

}  // namespace
}  // namespace lintel::test

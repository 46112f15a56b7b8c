// Messages of all sizes, verified byte by byte. Each size at which the method of transfer is likely
// to change is tested together with its neighbours.
#include <algorithm>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

// The neighbours of powers of two, of cell and page sizes, and of common eager limits.
std::vector<ptl_size_t> interesting_sizes() {
  return {1,      2,      7,      8,      15,      16,      17,     31,     32,     33,     47,
          48,     49,     63,     64,     65,      79,      80,     81,     95,     96,     97,
          111,    112,    113,    127,    128,     129,     191,    192,    193,    255,    256,
          257,    511,    512,    513,    1023,    1024,    1025,   2047,   2048,   2049,   4031,
          4032,   4033,   4095,   4096,   4097,    8000,    8191,   8192,   8193,   16383,  16384,
          16385,  32767,  32768,  32769,  65535,   65536,   65537,  100003, 131071, 131072, 131073,
          262143, 262144, 262145, 524289, 1048575, 1048576, 1048577};
}

class MessageSizeTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, MessageSizeTest, testing::ValuesIn(all_pairs()), pair_name);

// spec 3.15.2, 2.7.2
TEST_P(MessageSizeTest, PutsArriveByteForByte) {
  run_pair(GetParam(), [](Pair& pair) {
    const std::size_t bytes = 1048577 + 64;
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT); });
    uint32_t seed = 0;
    for (const ptl_size_t size : interesting_sizes()) {
      ++seed;
      pair.on_initiator([&] {
        fill(initiator.source.memory.first(size + 3), seed);
        initiator.put_and_wait({.length = size, .local_offset = 3, .remote_offset = 5});
      });
      pair.on_target([&] {
        EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).mlength, size);
        expect_pattern(target.memory.subspan(5, size), seed, 3);
        expect_bytes(target.memory.subspan(5 + size, 16), std::byte{0});
        std::fill_n(target.memory.begin(), 5 + size, std::byte{0});
      });
    }
  });
}

// spec 3.15.3, 2.7.2
TEST_P(MessageSizeTest, GetsArriveByteForByte) {
  run_pair(GetParam(), [](Pair& pair) {
    const std::size_t bytes = 1048577 + 64;
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] {
      fill(target.memory, 77);
      target.append(PTL_ME_OP_GET);
    });
    pair.on_initiator([&] {
      for (const ptl_size_t size : interesting_sizes()) {
        const ptl_event_t reply =
            initiator.get_and_wait({.length = size, .local_offset = 3, .remote_offset = 5});
        EXPECT_EQ(reply.mlength, size);
        expect_pattern(initiator.result.memory.subspan(3, size), 77, 5);
        expect_bytes(initiator.result.memory.subspan(3 + size, 16), std::byte{0});
        std::fill_n(initiator.result.memory.begin(), 3 + size, std::byte{0});
      }
    });
  });
}

// spec 3.12, 3.11, 3.13.4
TEST_P(MessageSizeTest, LargeMessagesAreTruncatedWhereTheEntryEnds) {
  run_pair(GetParam(), [](Pair& pair) {
    const std::size_t bytes = 400000;
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET, {.length = 100001}); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 5);
      const auto [send, ack] = initiator.put_and_wait({.length = bytes, .remote_offset = 7});
      EXPECT_EQ(send.mlength, bytes);
      EXPECT_EQ(ack.mlength, 100001u - 7u);
    });
    pair.on_target([&] {
      const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(event.rlength, bytes);
      EXPECT_EQ(event.mlength, 100001u - 7u);
      expect_bytes(target.memory.first(7), std::byte{0});
      expect_pattern(target.memory.subspan(7, 100001 - 7), 5);
      expect_bytes(target.memory.subspan(100001), std::byte{0});
    });
    pair.on_initiator([&] {
      const ptl_event_t reply = initiator.get_and_wait({.length = bytes, .remote_offset = 7});
      EXPECT_EQ(reply.mlength, 100001u - 7u);
      expect_pattern(initiator.result.memory.first(100001 - 7), 5);
      expect_bytes(initiator.result.memory.subspan(100001 - 7), std::byte{0});
    });
    pair.on_target([&] { target.events.expect(PTL_EVENT_GET); });
  });
}

class HugeMessageTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, HugeMessageTest, testing::ValuesIn(one_pair_per_path()), pair_name);

// Datagrams between emulated devices carry 5 MiB/s: there, tests send a part of their bytes.
std::size_t divisor_of(const PairKind& kind) {
  return kind.path == Path::verbs_ud && machine_slowdown() > 1 ? 10 : 1;
}

// spec 3.15.2, 3.15.3, 3.6.1
TEST_P(HugeMessageTest, SixtyFourMebibytesThereAndBack) {
  run_pair(GetParam(), [](Pair& pair) {
    const std::size_t bytes = (64u << 20u) / divisor_of(GetParam()) + 13;
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    pair.on_target([&] { target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 21);
      EXPECT_EQ(initiator.put_and_wait({.length = bytes}).ack.mlength, bytes);
    });
    pair.on_target([&] {
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).mlength, bytes);
      expect_pattern(target.memory, 21);
    });
    pair.on_initiator([&] {
      EXPECT_EQ(initiator.get_and_wait({.length = bytes}).mlength, bytes);
      expect_pattern(initiator.result.memory, 21);
    });
  });
}

// spec 3.6.1, 3.15.2, 3.15.3, 3.10.2
TEST_P(HugeMessageTest, MoreThanFourGibibytesIfTheLimitAllows) {
  if (divisor_of(GetParam()) != 1)
    GTEST_SKIP() << "datagrams between emulated devices carry 5 MiB/s: a quarter of an hour";
  PairOptions options;
  // A network carries more than 1 GiB/s, but only some 10 MiB/s when six busy programs share each
  // processor.
  const Path path = GetParam().path;
  const bool by_memory = path == Path::self || path == Path::shm || path == Path::shm_copy;
  options.run.deadline = (by_memory ? 6 : 30) * test_deadline;
  run_pair(GetParam(), options, [](Pair& pair) {
    // The message consists of this memory, repeated.
    constexpr std::size_t piece = 16u << 20u;
    const std::size_t pieces = std::min<ptl_size_t>(257, pair.limits().max_msg_size / piece);
    const ptl_size_t length = pieces * ptl_size_t{piece};
    ASSERT_GE(length, ptl_size_t{2} << 30u);
    TargetSide target(pair, {.bytes = piece});
    InitiatorSide initiator(pair, {.bytes = piece});
    const auto repeated = [&](std::span<std::byte> memory) {
      return std::vector<ptl_iovec_t>(pieces, {memory.data(), memory.size()});
    };
    std::vector<ptl_iovec_t> remote;
    pair.on_target([&] {
      remote = repeated(target.memory);
      target.append(
          {.start = remote.data(),
           .length = remote.size(),
           .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_IOVEC | PTL_ME_EVENT_LINK_DISABLE});
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 8);
      std::vector<ptl_iovec_t> local = repeated(initiator.source.memory);
      Descriptor descriptor(pair.ni(), {local.data(), local.size(), PTL_IOVEC,
                                        initiator.source.events.handle(), PTL_CT_NONE});
      must(PtlPut(descriptor.handle(), 0, length, PTL_ACK_REQ, pair.target_id(), default_pt_index,
                  0, 0, nullptr, 0));
      const auto events = initiator.source.events.expect_all({PTL_EVENT_SEND, PTL_EVENT_ACK});
      EXPECT_EQ(events[0].mlength, length);
      EXPECT_EQ(events[1].mlength, length);
      // Reads the last bytes of the message, and one byte beyond its end.
      const ptl_event_t reply =
          initiator.get_and_wait({.length = 1000, .remote_offset = length - 999});
      EXPECT_EQ(reply.mlength, 999u);
      expect_pattern(initiator.result.memory.first(999), 8, piece - 999);
      descriptor.release();
    });
    pair.on_target([&] {
      const ptl_event_t event = target.events.expect(PTL_EVENT_PUT);
      EXPECT_EQ(event.rlength, length);
      EXPECT_EQ(event.mlength, length);
      expect_pattern(target.memory, 8);
    });
  });
}

// spec 2.7.2, 3.13.3
TEST_P(HugeMessageTest, ThousandsInFlightAllComplete) {
  run_pair(GetParam(), [](Pair& pair) {
    const ptl_size_t count = 6000 / divisor_of(GetParam());
    constexpr std::size_t bytes = 40000;
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes,
                                   .options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY |
                                              PTL_MD_EVENT_SUCCESS_DISABLE});
    pair.on_target(
        [&] { target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE); });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 8);
      for (ptl_size_t i = 0; i < count; ++i) {
        initiator.put({.length = bytes, .ack = PTL_CT_ACK_REQ});
        if (i % 4 == 0) initiator.get({.length = bytes});
      }
      initiator.source.counter.expect(count);
      initiator.result.counter.expect(count / 4);
      expect_pattern(initiator.result.memory, 8);
    });
    pair.on_target([&] { EXPECT_EQ(pair.interface().status(PTL_SR_DROP_COUNT), 0); });
  });
}

// spec 2.7.2, 3.15.2
TEST_P(HugeMessageTest, SeveralAtOnceInBothDirections) {
  run_pair(GetParam(), [](Pair& pair) {
    constexpr std::size_t piece = 3000001;
    constexpr std::size_t pieces = 6;
    TargetSide target(pair, {.bytes = piece * pieces * 2});
    InitiatorSide initiator(pair, {.bytes = piece * pieces});
    pair.on_target([&] {
      fill(target.memory.subspan(piece * pieces), 31);
      target.append(PTL_ME_OP_PUT | PTL_ME_OP_GET);
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 32);
      for (std::size_t i = 0; i < pieces; ++i) {
        const ptl_size_t offset = i * piece;
        initiator.put({.length = piece, .local_offset = offset, .remote_offset = offset});
        initiator.get(
            {.length = piece, .local_offset = offset, .remote_offset = piece * pieces + offset});
      }
      for (std::size_t i = 0; i < pieces; ++i) initiator.result.events.expect(PTL_EVENT_REPLY);
      for (std::size_t i = 0; i < 2 * pieces; ++i)
        EXPECT_EQ(initiator.source.events.next().mlength, piece);
      expect_pattern(initiator.result.memory, 31);
    });
    pair.on_target([&] {
      for (std::size_t i = 0; i < 2 * pieces; ++i) EXPECT_EQ(target.events.next().mlength, piece);
      expect_pattern(target.memory.first(piece * pieces), 32);
      expect_pattern(target.memory.subspan(piece * pieces), 31);
    });
  });
}

}  // namespace
}  // namespace lintel::test

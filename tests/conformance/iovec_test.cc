// Scatter lists at both ends, with offsets, compared with a byte-by-byte model.
#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "operations.h"

namespace lintel::test {
namespace {

class IovecTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, IovecTest, testing::ValuesIn(all_pairs()), pair_name);

// Both sides draw the same numbers, so each can compute what the other one does.
struct Trial {
  explicit Trial(uint32_t seed, std::span<std::byte> local_memory,
                 std::span<std::byte> remote_memory, std::size_t longest_piece)
      : random(seed),
        local(random_scatter(random, local_memory, 1 + random() % 20, longest_piece)),
        remote(random_scatter(random, remote_memory, 1 + random() % 20, longest_piece)) {
    length = local.positions.empty() ? 0 : random() % (local.positions.size() + 1);
    local_offset = random() % (local.positions.size() - length + 1);
    remote_offset = random() % (remote.positions.size() + 3);
    const std::size_t room =
        remote.positions.size() - std::min<std::size_t>(remote_offset, remote.positions.size());
    moved = std::min<std::size_t>(length, room);
  }

  std::mt19937 random;
  Scatter local;
  Scatter remote;
  ptl_size_t length = 0;
  ptl_size_t local_offset = 0;
  ptl_size_t remote_offset = 0;
  ptl_size_t moved = 0;
};

// Zeroed memory of `size` bytes after `moved` bytes of the list `sources` in `from` have been
// written to the list `destinations` in it.
std::vector<std::byte> model(std::span<const std::byte> from, const Scatter& sources,
                             ptl_size_t source_offset, const Scatter& destinations,
                             ptl_size_t destination_offset, ptl_size_t moved, std::size_t size) {
  std::vector<std::byte> to(size);
  for (std::size_t i = 0; i < moved; ++i) {
    to[destinations.positions[destination_offset + i]] = from[sources.positions[source_offset + i]];
  }
  return to;
}

void run_trials(const PairKind& kind, std::size_t bytes, std::size_t longest_piece, int trials,
                Operation operation) {
  run_pair(kind, [&](Pair& pair) {
    TargetSide target(pair, {.bytes = bytes});
    InitiatorSide initiator(pair, {.bytes = bytes});
    std::vector<std::byte> stand_in(bytes);  // the memory of the other side, for the model
    const bool putting = operation == Operation::put;
    for (int number = 0; number < trials; ++number) {
      const auto seed = static_cast<uint32_t>(number);
      SCOPED_TRACE(number);
      fill(stand_in, seed);
      const std::span<std::byte> local =
          pair.is_initiator() ? (putting ? initiator.source : initiator.result).memory : stand_in;
      const Trial trial(seed, local, pair.is_target() ? target.memory : stand_in, longest_piece);

      pair.on_target([&] {
        if (putting) {
          std::ranges::fill(target.memory, std::byte{0});
        } else {
          fill(target.memory, seed);
        }
        target.append({.start = const_cast<ptl_iovec_t*>(trial.remote.pieces.data()),
                       .length = trial.remote.pieces.size(),
                       .options = needed_options(operation) | PTL_IOVEC | PTL_ME_USE_ONCE |
                                  PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE});
      });
      pair.on_initiator([&] {
        if (putting) {
          fill(local, seed);
        } else {
          std::ranges::fill(local, std::byte{0});
        }
        LocalMemory& side = putting ? initiator.source : initiator.result;
        side.descriptor = Descriptor(
            pair.ni(), {const_cast<ptl_iovec_t*>(trial.local.pieces.data()),
                        trial.local.pieces.size(), PTL_IOVEC, side.events.handle(), PTL_CT_NONE});
        const Request request{.length = trial.length,
                              .local_offset = trial.local_offset,
                              .remote_offset = trial.remote_offset};
        EXPECT_EQ(perform(initiator, operation, request).mlength, trial.moved);
        side.descriptor.release();
        if (!putting) {
          std::vector<std::byte> remote(bytes);
          fill(remote, seed);
          EXPECT_TRUE(std::ranges::equal(
              local, model(remote, trial.remote, trial.remote_offset, trial.local,
                           trial.local_offset, trial.moved, bytes)));
        }
      });
      pair.on_target([&] {
        const ptl_event_t event = target.events.expect(target_event(operation));
        EXPECT_EQ(event.rlength, trial.length);
        EXPECT_EQ(event.mlength, trial.moved);
        if (trial.moved > 0) {
          EXPECT_EQ(event.start,
                    target.memory.data() + trial.remote.positions[trial.remote_offset]);
        }
        if (putting) {
          std::vector<std::byte> source(bytes);
          fill(source, seed);
          EXPECT_TRUE(std::ranges::equal(
              target.memory, model(source, trial.local, trial.local_offset, trial.remote,
                                   trial.remote_offset, trial.moved, bytes)));
        }
      });
    }
  });
}

// spec 3.10.2, 3.10.1, 3.11.1, 3.12.1, 3.13.4
TEST_P(IovecTest, RandomSmallPutsMatchTheModel) {
  run_trials(GetParam(), 600, 40, 60, Operation::put);
}

// spec 3.10.2, 3.10.1, 3.11.1, 3.12.1, 3.13.4
TEST_P(IovecTest, RandomSmallGetsMatchTheModel) {
  run_trials(GetParam(), 600, 40, 60, Operation::get);
}

// spec 3.10.2
TEST_P(IovecTest, RandomLargePutsMatchTheModel) {
  run_trials(GetParam(), 400000, 50000, 12, Operation::put);
}

// spec 3.10.2
TEST_P(IovecTest, RandomLargeGetsMatchTheModel) {
  run_trials(GetParam(), 400000, 50000, 12, Operation::get);
}

// spec 3.10.2, 3.6.1
TEST_P(IovecTest, ManyPieces) {
  run_pair(GetParam(), [](Pair& pair) {
    const auto pieces = static_cast<std::size_t>(std::min(pair.limits().max_iovecs, 4096));
    TargetSide target(pair, {.bytes = pieces * 4});
    InitiatorSide initiator(pair, {.bytes = pieces * 4});
    std::vector<ptl_iovec_t> scattered;  // every other byte pair, backwards
    const auto scatter = [&](std::span<std::byte> memory) {
      scattered.clear();
      for (std::size_t i = 0; i < pieces; ++i)
        scattered.push_back({memory.data() + 4 * (pieces - 1 - i), 2});
    };
    pair.on_target([&] {
      scatter(target.memory);
      target.append({.start = scattered.data(),
                     .length = pieces,
                     .options = PTL_ME_OP_PUT | PTL_IOVEC | PTL_ME_EVENT_LINK_DISABLE});
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 3);
      initiator.put_and_wait({.length = pieces * 2});
    });
    pair.on_target([&] {
      for (std::size_t i = 0; i < pieces; ++i)
        expect_pattern(target.memory.subspan(4 * (pieces - 1 - i), 2), 3, 2 * i);
    });
    pair.on_target([&] {  // before `scattered` changes, for a process that plays both parts
      target.events.expect(PTL_EVENT_PUT);
      std::ranges::fill(target.memory, std::byte{0});
    });
    pair.on_initiator([&] {
      std::vector<ptl_iovec_t> gathered;
      for (std::size_t i = 0; i < pieces; ++i)
        gathered.push_back({initiator.source.memory.data() + 4 * (pieces - 1 - i), 2});
      const Descriptor descriptor(pair.ni(), {gathered.data(), pieces, PTL_IOVEC,
                                              initiator.source.events.handle(), PTL_CT_NONE});
      must(PtlPut(descriptor.handle(), 0, pieces * 2, PTL_ACK_REQ, pair.target_id(),
                  default_pt_index, 0, 0, nullptr, 0));
      initiator.expect_send_and_ack();
    });
    pair.on_target([&] {
      for (std::size_t i = 0; i < pieces; ++i)
        expect_pattern(target.memory.subspan(4 * i, 2), 3, 4 * i);
    });
  });
}

// spec 3.10.2, 3.10.1
TEST_P(IovecTest, WithoutPiecesIsAnEmptyRegion) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    ptl_iovec_t none{};
    pair.on_target([&] {
      target.append({.start = &none,
                     .length = 0,
                     .options = PTL_ME_OP_PUT | PTL_IOVEC | PTL_ME_EVENT_LINK_DISABLE});
    });
    pair.on_initiator([&] {
      EXPECT_EQ(initiator.put_and_wait({.length = 30}).ack.mlength, 0u);
      const Descriptor empty(pair.ni(),
                             {&none, 0, PTL_IOVEC, initiator.source.events.handle(), PTL_CT_NONE});
      must(PtlPut(empty.handle(), 0, 0, PTL_ACK_REQ, pair.target_id(), default_pt_index, 0, 0,
                  nullptr, 0));
      initiator.expect_send_and_ack();
    });
  });
}

class MatchingIovecTest : public testing::TestWithParam<PairKind> {};
INSTANTIATE_TEST_SUITE_P(Paths, MatchingIovecTest, testing::ValuesIn(matching_pairs()), pair_name);

// spec 3.10.2, 3.12.1
TEST_P(MatchingIovecTest, LocallyManagedOffsetsRunThroughThePieces) {
  run_sides(GetParam(), [](Pair& pair, TargetSide& target, InitiatorSide& initiator) {
    std::vector<ptl_iovec_t> pieces;
    pair.on_target([&] {
      pieces = {{target.memory.data() + 1000, 30}, {target.memory.data(), 50}};
      target.append(
          {.start = pieces.data(),
           .length = pieces.size(),
           .options = PTL_ME_OP_PUT | PTL_IOVEC | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE});
    });
    pair.on_initiator([&] {
      fill(initiator.source.memory, 3);
      EXPECT_EQ(initiator.put_and_wait({.length = 20}).ack.remote_offset, 0u);
      EXPECT_EQ(initiator.put_and_wait({.length = 20, .local_offset = 20}).ack.remote_offset, 20u);
      EXPECT_EQ(initiator.put_and_wait({.length = 90, .local_offset = 40}).ack.mlength, 40u);
    });
    pair.on_target([&] {
      expect_pattern(target.memory.subspan(1000, 30), 3, 0);
      expect_pattern(target.memory.first(50), 3, 30);
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).start, target.memory.data() + 1000);
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).start, target.memory.data() + 1020);
      EXPECT_EQ(target.events.expect(PTL_EVENT_PUT).start, target.memory.data() + 10);
    });
  });
}

}  // namespace
}  // namespace lintel::test

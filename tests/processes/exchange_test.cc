// Several ranks exchanging messages: all to all, rings, many to one.
#include <cstring>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/memory.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

constexpr ptl_pt_index_t pt_index = 4;

class ExchangeTest : public testing::TestWithParam<InterfaceKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, ExchangeTest, testing::ValuesIn(all_interface_kinds),
                         [](const auto& info) { return info.param.name(); });

// One portal with an entry over `memory`, on every rank.
void open_portal(const Interface& interface, std::span<std::byte> memory, unsigned options,
                 ptl_handle_eq_t events, ptl_handle_ct_t counter) {
  ptl_pt_index_t index = 0;
  must(PtlPTAlloc(interface.handle(), 0, events, pt_index, &index));
  interface.append(pt_index, {.start = memory.data(),
                              .length = memory.size(),
                              .options = options | PTL_ME_EVENT_LINK_DISABLE,
                              .counter = counter});
}

// spec 3.15.2, 2.1
TEST_P(ExchangeTest, EveryRankPutsToEveryRank) {
  run_ranks(8, [&](Rank& rank) {
    constexpr std::size_t block = 3000;
    constexpr uint32_t rounds = 5;
    const auto ranks = static_cast<std::size_t>(rank.count());
    const auto self = static_cast<std::size_t>(rank.index());
    std::vector<std::byte> received(block * ranks);
    std::vector<std::byte> sent(block * ranks);
    const Interface interface(rank, GetParam());
    const Counter arrived(interface.handle());
    const Counter acknowledged(interface.handle());
    open_portal(interface, received, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, PTL_EQ_NONE,
                arrived.handle());
    const Descriptor source(interface.handle(), sent, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE,
                            acknowledged.handle());
    rank.barrier();
    for (uint32_t round = 1; round <= rounds; ++round) {
      for (std::size_t to = 0; to < ranks; ++to) {
        fill(std::span(sent).subspan(block * to, block),
             static_cast<uint32_t>(round * 1000 + self * 16 + to));
        must(PtlPut(source.handle(), block * to, block, PTL_CT_ACK_REQ,
                    interface.address(static_cast<int>(to)), pt_index, 0, block * self, nullptr,
                    0));
      }
      acknowledged.expect(round * ranks);
      arrived.expect(round * ranks);
      for (std::size_t from = 0; from < ranks; ++from) {
        expect_pattern(std::span(received).subspan(block * from, block),
                       static_cast<uint32_t>(round * 1000 + from * 16 + self));
      }
      rank.barrier();
    }
  });
}

// spec 3.15.3
TEST_P(ExchangeTest, EveryRankGetsFromEveryRank) {
  run_ranks(6, [&](Rank& rank) {
    constexpr std::size_t bytes = 50000;
    std::vector<std::byte> offered(bytes);
    fill(offered, static_cast<uint32_t>(rank.index()));
    std::vector<std::byte> fetched(bytes);
    const Interface interface(rank, GetParam());
    open_portal(interface, offered, PTL_ME_OP_GET, PTL_EQ_NONE, PTL_CT_NONE);
    const EventQueue events(interface.handle());
    const Descriptor destination(interface.handle(), fetched, 0, events.handle());
    rank.barrier();
    for (int step = 0; step < rank.count(); ++step) {
      const int from = (rank.index() + step) % rank.count();
      must(
          PtlGet(destination.handle(), 0, bytes, interface.address(from), pt_index, 0, 0, nullptr));
      EXPECT_EQ(events.expect(PTL_EVENT_REPLY).mlength, bytes);
      expect_pattern(fetched, static_cast<uint32_t>(from));
    }
    rank.barrier();
  });
}

// spec 3.15.2, 3.13
TEST_P(ExchangeTest, ATokenGoesRoundTheRing) {
  run_ranks(5, [&](Rank& rank) {
    constexpr uint64_t laps = 100;
    std::vector<std::byte> memory(8);
    const Interface interface(rank, GetParam());
    const EventQueue events(interface.handle());
    open_portal(interface, memory, PTL_ME_OP_PUT, events.handle(), PTL_CT_NONE);
    const Descriptor source(interface.handle(), memory);
    const int next = (rank.index() + 1) % rank.count();
    rank.barrier();
    const auto pass = [&](uint64_t token) {
      must(PtlPut(source.handle(), 0, 8, PTL_NO_ACK_REQ, interface.address(next), pt_index, 0, 0,
                  nullptr, token));
    };
    if (rank.index() == 0) pass(1);
    for (uint64_t lap = 0; lap < laps; ++lap) {
      const ptl_event_t event = events.expect(PTL_EVENT_PUT);
      const auto ranks = static_cast<uint64_t>(rank.count());
      const auto self = static_cast<uint64_t>(rank.index());
      EXPECT_EQ(event.hdr_data, self == 0 ? (lap + 1) * ranks : lap * ranks + self);
      const int previous = (rank.index() + rank.count() - 1) % rank.count();
      EXPECT_TRUE(interface.same_process(event.initiator, interface.address(previous)));
      if (rank.index() != 0 || lap + 1 < laps) pass(event.hdr_data + 1);
    }
    rank.barrier();
  });
}

// spec 3.15.5, 3.15.6, 3.15.4
TEST_P(ExchangeTest, ManyRanksAddToOneCounterAndDrawDistinctTickets) {
  run_ranks(6, [&](Rank& rank) {
    const uint64_t each = machine_slowdown() > 1 ? 100 : 500;  // six processes share a slow machine
    const uint64_t total = each * static_cast<uint64_t>(rank.count());
    std::vector<std::byte> shared(16);
    std::vector<std::byte> local(16);
    const Interface interface(rank, GetParam());
    if (rank.index() == 0) {
      open_portal(interface, shared, PTL_ME_OP_PUT | PTL_ME_OP_GET, PTL_EQ_NONE, PTL_CT_NONE);
    }
    const EventQueue events(interface.handle());
    const Descriptor descriptor(interface.handle(), local, PTL_MD_EVENT_SEND_DISABLE,
                                events.handle());
    rank.barrier();
    const uint64_t one = 1;
    std::memcpy(local.data(), &one, 8);
    uint64_t last = 0;
    for (uint64_t i = 0; i < each; ++i) {
      must(PtlFetchAtomic(descriptor.handle(), 8, descriptor.handle(), 0, 8, interface.address(0),
                          pt_index, 0, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T));
      events.expect(PTL_EVENT_REPLY);
      uint64_t ticket = 0;
      std::memcpy(&ticket, local.data() + 8, 8);
      EXPECT_LT(ticket, total);
      if (i > 0) {
        EXPECT_GT(ticket, last);
      }
      last = ticket;
      must(PtlAtomic(descriptor.handle(), 8, 8, PTL_ACK_REQ, interface.address(0), pt_index, 0, 8,
                     nullptr, 0, PTL_SUM, PTL_UINT64_T));
      events.expect(PTL_EVENT_ACK);
    }
    rank.barrier();
    if (rank.index() == 0) {
      uint64_t drawn = 0;
      uint64_t sum = 0;
      std::memcpy(&drawn, shared.data(), 8);
      std::memcpy(&sum, shared.data() + 8, 8);
      EXPECT_EQ(drawn, total);
      EXPECT_EQ(sum, total * (total - 1) / 2) << "every ticket once";
    }
    rank.barrier();
  });
}

class MatchingExchangeTest : public testing::TestWithParam<InterfaceKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, MatchingExchangeTest,
                         testing::Values(matching_physical, matching_logical),
                         [](const auto& info) { return info.param.name(); });

// spec 3.12, 2.5.2, 2.7
TEST_P(MatchingExchangeTest, ReceivesSelectTheirSource) {
  run_ranks(5, [&](Rank& rank) {
    constexpr uint64_t each = 200;
    const Interface interface(rank, GetParam());
    const EventQueue events(interface.handle(), 4096);
    ptl_pt_index_t index = 0;
    must(PtlPTAlloc(interface.handle(), 0, events.handle(), pt_index, &index));
    interface.append(
        pt_index,
        {.options = PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE},
        PTL_OVERFLOW_LIST);
    const Descriptor nothing(interface.handle(), std::span<std::byte>{});
    rank.barrier();
    for (uint64_t i = 0; i < each; ++i) {
      for (int to = 0; to < rank.count(); ++to) {
        must(PtlPut(nothing.handle(), 0, 0, PTL_NO_ACK_REQ, interface.address(to), pt_index, 0, 0,
                    nullptr, i));
      }
    }
    // One source after the other: before its messages arrive, during that, and afterwards.
    for (int from = 0; from < rank.count(); ++from) {
      const ptl_process_t source = interface.address((from + rank.index()) % rank.count());
      for (uint64_t i = 0; i < each; ++i) {
        interface.append(pt_index,
                         {.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                                     PTL_ME_EVENT_UNLINK_DISABLE,
                          .match_id = &source});
        const ptl_event_t event = events.next();
        EXPECT_TRUE(event.type == PTL_EVENT_PUT || event.type == PTL_EVENT_PUT_OVERFLOW);
        EXPECT_TRUE(interface.same_process(event.initiator, source));
        EXPECT_EQ(event.hdr_data, i);
      }
    }
    rank.barrier();
    events.expect_empty();
  });
}

}  // namespace
}  // namespace lintel::test

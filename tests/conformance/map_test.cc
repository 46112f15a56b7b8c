// Logical addressing: PtlSetMap, PtlGetMap, PtlGetId, PtlGetPhysId.
#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "support/interface.h"
#include "support/objects.h"
#include "support/ranks.h"
#include "support/text.h"

namespace lintel::test {
namespace {

bool same(const ptl_process_t& left, const ptl_process_t& right) {
  return left.phys.nid == right.phys.nid && left.phys.pid == right.phys.pid;
}

class MapTest : public testing::TestWithParam<InterfaceKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, MapTest, testing::Values(matching_logical, nonmatching_logical),
                         [](const auto& info) { return info.param.name(); });

// spec 3.6.6, 3.6.7
TEST_P(MapTest, IsReturnedWholeOrInPart) {
  run_ranks(1, [&](Rank& rank) {
    rank.initialise();
    const Interface interface(GetParam(), {});
    ptl_process_t own{};
    must(PtlGetPhysId(interface.handle(), &own));
    std::array<ptl_process_t, 5> map{};
    for (unsigned i = 0; i < map.size(); ++i) map[i].phys = {own.phys.nid, 100 + i};
    map[3] = own;
    must(PtlSetMap(interface.handle(), map.size(), map.data()));

    for (const std::size_t asked : {0u, 2u, 5u, 8u}) {
      std::array<ptl_process_t, 8> read{};
      for (ptl_process_t& id : read) id.phys = {7, 7};
      ptl_size_t size = 0;
      must(PtlGetMap(interface.handle(), asked, read.data(), &size));
      EXPECT_EQ(size, map.size());
      for (std::size_t i = 0; i < read.size(); ++i) {
        if (i < std::min(asked, map.size())) {
          EXPECT_TRUE(same(read[i], map[i])) << i;
        } else {
          EXPECT_EQ(read[i].phys.nid, 7u) << "left unmodified";
          EXPECT_EQ(read[i].phys.pid, 7u);
        }
      }
    }
  });
}

// spec 3.6.7
TEST_P(MapTest, BeforeItIsSetThereIsNone) {
  run_ranks(1, [&](Rank& rank) {
    rank.initialise();
    const Interface interface(GetParam(), {});
    ptl_process_t id{};
    ptl_size_t size = 99;
    EXPECT_EQ(PTL_IGNORED, PtlGetMap(interface.handle(), 1, &id, &size));
    must(PtlGetPhysId(interface.handle(), &id));
  });
}

// spec 3.6.6
TEST_P(MapTest, ASecondMapReplacesTheFirst) {
  run_ranks(1, [&](Rank& rank) {
    Interface interface(rank, GetParam());
    const ptl_process_t own = interface.physical_id(0);
    std::array<ptl_process_t, 3> map{};
    for (unsigned i = 0; i < map.size(); ++i) map[i].phys = {own.phys.nid, 200 + i};
    map[2] = own;
    must(PtlSetMap(interface.handle(), map.size(), map.data()));
    std::array<ptl_process_t, 3> read{};
    ptl_size_t size = 0;
    must(PtlGetMap(interface.handle(), read.size(), read.data(), &size));
    EXPECT_EQ(size, 3u);
    EXPECT_TRUE(same(read[1], map[1]));
    ptl_process_t id{};
    must(PtlGetId(interface.handle(), &id));
    EXPECT_EQ(id.rank, 2u);
  });
}

// spec 3.6.6, 2.1
TEST_P(MapTest, KeepsACopyOfTheArray) {
  run_ranks(1, [&](Rank& rank) {
    rank.initialise();
    const Interface interface(GetParam(), {});
    ptl_process_t own{};
    must(PtlGetPhysId(interface.handle(), &own));
    std::vector<ptl_process_t> map(1, own);
    must(PtlSetMap(interface.handle(), 1, map.data()));
    map[0].phys = {1, 1};
    ptl_process_t read{};
    ptl_size_t size = 0;
    must(PtlGetMap(interface.handle(), 1, &read, &size));
    EXPECT_TRUE(same(read, own));
  });
}

// spec 3.9.2, 3.9.3
TEST_P(MapTest, IdIsTheRankAndPhysicalIdTheAddress) {
  run_ranks(3, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    ptl_process_t id{};
    must(PtlGetId(interface.handle(), &id));
    EXPECT_EQ(id.rank, static_cast<ptl_rank_t>(rank.index()));
    must(PtlGetPhysId(interface.handle(), &id));
    EXPECT_TRUE(same(id, interface.physical_id(rank.index())));
  });
}

// spec 3.6.6, 3.13.4, 3.15.2
TEST_P(MapTest, RanksAreTranslatedByTheMapOfTheSender) {
  run_ranks(3, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    // Each process rotates the map by its own index: rank r of process i is process (r + i) mod 3.
    const auto shift = static_cast<std::size_t>(rank.index());
    std::array<ptl_process_t, 3> map{};
    for (std::size_t r = 0; r < 3; ++r)
      map[r] = interface.physical_id(static_cast<int>((r + shift) % 3));
    must(PtlSetMap(interface.handle(), 3, map.data()));
    const EventQueue events(interface.handle());
    interface.allocate(2, events.handle());
    interface.append(2, {.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE});
    rank.barrier();
    const Descriptor nothing(interface.handle(), std::span<std::byte>{});
    for (ptl_rank_t to = 0; to < 3; ++to) {
      ptl_process_t target{};
      target.rank = to;
      const auto process = (to + shift) % 3;
      must(PtlPut(nothing.handle(), 0, 0, PTL_NO_ACK_REQ, target, 2, 0, 0, nullptr,
                  shift * 10 + process));
    }
    for (int i = 0; i < 3; ++i) {
      const ptl_event_t event = events.expect(PTL_EVENT_PUT);
      const uint64_t from = event.hdr_data / 10;
      EXPECT_EQ(event.hdr_data % 10, shift) << "arrived at the wrong process";
      // If the maps differ, it is not specified which map gives the name in the event. By its own
      // map the sender is 0.
      EXPECT_TRUE(event.initiator.rank == 0 || event.initiator.rank == (from + 3 - shift) % 3)
          << event.initiator.rank;
    }
    rank.barrier();
  });
}

// spec 3.6.6, 3.15.2
TEST_P(MapTest, RanksOutsideTheMapAreRefused) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    const Descriptor nothing(interface.handle(), std::span<std::byte>{});
    for (const ptl_rank_t beyond : {1u, 1000u, PTL_RANK_ANY}) {
      ptl_process_t target{};
      target.rank = beyond;
      EXPECT_EQ(PTL_ARG_INVALID,
                PtlPut(nothing.handle(), 0, 0, PTL_NO_ACK_REQ, target, 2, 0, 0, nullptr, 0));
      EXPECT_EQ(PTL_ARG_INVALID, PtlGet(nothing.handle(), 0, 0, target, 2, 0, 0, nullptr));
    }
  });
}

class PhysicalMapTest : public testing::TestWithParam<InterfaceKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, PhysicalMapTest,
                         testing::Values(matching_physical, nonmatching_physical),
                         [](const auto& info) { return info.param.name(); });

// spec 3.6.6, 3.6.7
TEST_P(PhysicalMapTest, PhysicalInterfacesHaveNoMap) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    ptl_process_t id = interface.physical_id(0);
    ptl_size_t size = 0;
    EXPECT_EQ(PTL_ARG_INVALID, PtlSetMap(interface.handle(), 1, &id));
    EXPECT_EQ(PTL_ARG_INVALID, PtlGetMap(interface.handle(), 1, &id, &size));
  });
}

// spec 3.9.2, 3.9.3
TEST_P(PhysicalMapTest, BothIdsAreTheAddress) {
  run_ranks(1, [&](Rank& rank) {
    const Interface interface(rank, GetParam());
    ptl_process_t id{};
    must(PtlGetId(interface.handle(), &id));
    EXPECT_TRUE(same(id, interface.physical_id(0)));
    EXPECT_LT(id.phys.pid, PTL_PID_MAX);
    EXPECT_NE(id.phys.nid, PTL_NID_ANY);
  });
}

// spec 3.6.6
TEST(LogicalMapTest, TheTwoLogicalInterfacesHaveMapsOfTheirOwnOrShareOne) {
  run_ranks(1, [](Rank& rank) {
    const Interface first(rank, matching_logical);
    const Interface second(nonmatching_logical, {});
    ptl_process_t id{};
    ptl_size_t size = 0;
    const int code = PtlGetMap(second.handle(), 1, &id, &size);
    ASSERT_TRUE(code == PTL_IGNORED || code == PTL_OK);
    if (code == PTL_OK) {
      EXPECT_TRUE(same(id, first.physical_id(0)));
    }
  });
}

}  // namespace
}  // namespace lintel::test

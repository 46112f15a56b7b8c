// Simulated faults of a link: their description, and the same faults for the same seed.
#include "reliable/faulty_link.h"

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "reliable_test_support.h"
#include "udp_test_support.h"

namespace lintel::test {
namespace {

TEST(FaultsTest, AreReadOrRefused) {
  Faults faults;
  std::string reason;
  EXPECT_TRUE(Faults::parse("drop=0.01,dup=0.02,reorder=0.03,corrupt=0.5,seed=7", faults, reason));
  EXPECT_EQ(faults.drop, 0.01);
  EXPECT_EQ(faults.dup, 0.02);
  EXPECT_EQ(faults.reorder, 0.03);
  EXPECT_EQ(faults.corrupt, 0.5);
  EXPECT_EQ(faults.seed, 7u);
  EXPECT_TRUE(Faults::parse("", faults, reason));
  EXPECT_FALSE(faults.any());
  for (const char* wrong :
       {"drop=2", "drop=-1", "drop=x", "drop", "lose=0.1", "seed=-1", "drop=0.1x"}) {
    EXPECT_FALSE(Faults::parse(wrong, faults, reason)) << wrong;
    EXPECT_EQ(reason, wrong);
  }
}

TEST(FaultsTest, TheSameSeedGivesTheSameFaults) {
  const auto run = [](uint64_t seed) {
    FaultyLink link(open_link(),
                    {.drop = 0.2, .dup = 0.1, .reorder = 0.1, .corrupt = 0.1, .seed = seed});
    const LinkAddress self = link.own_address();
    std::vector<std::byte> bytes = pattern(1, 100);
    const Piece piece{bytes.data(), bytes.size()};
    const OutboundFrame frame{&self, &piece, 1};
    for (unsigned i = 0; i < 1000; ++i) {
      EXPECT_EQ(link.send(&frame, 1), 1u);
      InboundFrame arrived[8];
      while (link.receive(arrived, 8) != 0) {
      }
    }
    return link.fault_counters();
  };
  const FaultCounters once = run(5);
  const FaultCounters again = run(5);
  const FaultCounters other = run(6);
  EXPECT_EQ(once.dropped, again.dropped);
  EXPECT_EQ(once.doubled, again.doubled);
  EXPECT_EQ(once.reordered, again.reordered);
  EXPECT_EQ(once.corrupted, again.corrupted);
  EXPECT_NEAR(static_cast<double>(once.dropped), 200, 60);
  EXPECT_NE(std::tie(once.dropped, once.doubled, once.reordered),
            std::tie(other.dropped, other.doubled, other.reordered));
}

// A call of the link is a system call.
TEST(FaultsTest, FramesBetweenTwoFaultsGoTogether) {
  constexpr unsigned count = 64;
  test::MemoryNetwork network;
  auto memory_link =
      std::make_unique<test::MemoryLink>(network, ProcessId{1, 1}, 1500, 1 << 20, false);
  test::MemoryLink& below = *memory_link;
  FaultyLink link(std::move(memory_link), {.drop = 0.02, .seed = 3});
  const LinkAddress self = link.own_address();
  std::vector<std::byte> bytes = pattern(1, 100);
  const Piece piece{bytes.data(), bytes.size()};
  const std::vector<OutboundFrame> frames(count, {&self, &piece, 1});
  for (int burst = 0; burst < 20; ++burst) EXPECT_EQ(link.send(frames.data(), count), count);
  const unsigned dropped = static_cast<unsigned>(link.fault_counters().dropped);
  EXPECT_EQ(below.frames_taken + dropped, 20 * count);
  EXPECT_GT(dropped, 0u);
  EXPECT_LE(below.calls, 20 + dropped);
  below.full = true;
  EXPECT_LT(link.send(frames.data(), count), count) << "the caller hears that the link is full";
}

}  // namespace
}  // namespace lintel::test

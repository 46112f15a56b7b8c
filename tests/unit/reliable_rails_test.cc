// Connections with several paths: messages go by all of them and arrive once and in order,
// whichever path stops working.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "transport/rails.h"
#include "unit/reliable_test_support.h"

namespace lintel::test {
namespace {

constexpr ProcessId first_id{1, 10};
constexpr ProcessId second_id{2, 20};
constexpr uint64_t ms = 1'000'000;

class RailsTest : public testing::Test {
 protected:
  // Frames by rail i go at that rate, in frames of the largest size; those of a rail that is cut
  // are lost.
  struct Rail {
    uint64_t frame_ns = 0;
    bool is_cut = false;
    uint32_t longest = UINT32_MAX;
    uint64_t frames = 0;
    uint64_t data_frames = 0;
    std::array<uint64_t, 2> free_ns{};
  };

  explicit RailsTest(unsigned rails = 2)
      : first_(network_, first_id, {}, 1472, 256 * 1024, false, rails),
        second_(network_, second_id, {}, 1472, 256 * 1024, false, rails) {
    network_.script = [this](const LinkAddress& from, const LinkAddress& to, const Frame& frame) {
      return carry(from, to, frame);
    };
    link_ = first_.connect(second_id);
  }

  std::vector<MemoryNetwork::Copy> carry(const LinkAddress& from, const LinkAddress& to,
                                         const Frame& frame) {
    const unsigned index = rail_of(from.bytes[0] == address_of(first_id).bytes[0] ? from : to);
    const unsigned other = rail_of(from.bytes[0] == address_of(first_id).bytes[0] ? to : from);
    if (joined_[index] != other) return {};
    Rail& rail = rails_[index];
    ++rail.frames;
    if (header_of(frame).type == FrameType::data) ++rail.data_frames;
    if (rail.is_cut || frame.size() > rail.longest) return {};
    uint64_t& free_ns = rail.free_ns[from.bytes == address_of(first_id, index).bytes];
    free_ns = std::max(free_ns, virtual_now_ns) + rail.frame_ns * frame.size() / 1472;
    return {{frame, free_ns - virtual_now_ns}};
  }

  void send(unsigned count, uint32_t bytes = 1000) {
    const uint64_t end_ns = virtual_now_ns + 60'000 * ms;
    for (unsigned i = 0; i < count;) {
      ASSERT_LT(virtual_now_ns, end_ns);
      MessageHeader header{};
      header.kind = MessageKind::put;
      header.match_bits = sent_;
      if (first_.send(link_, header, std::vector<std::byte>(bytes)) == SendStatus::sent) {
        ++sent_;
        ++i;
        continue;
      }
      const uint64_t limit_ns = virtual_now_ns + 1;
      ASSERT_TRUE(run_until(both(), [&] { return virtual_now_ns >= limit_ns; }));
    }
  }
  // All messages arrive, once and in order.
  void expect_all_arrive(uint64_t limit_ns = 10'000 * ms) {
    ASSERT_TRUE(run_until(
        both(), [&] { return second_.messages.size() >= sent_; }, limit_ns));
    ASSERT_TRUE(run_until(
        both(), [&] { return first_.transport().all_delivered(); }, limit_ns));
    ASSERT_EQ(second_.messages.size(), sent_);
    for (uint64_t i = 0; i < sent_; ++i) EXPECT_EQ(second_.messages[i].header.match_bits, i);
    EXPECT_TRUE(first_.failed.empty());
    EXPECT_TRUE(second_.failed.empty());
  }
  std::vector<MemoryProcess*> both() { return {&first_, &second_}; }
  void connect() {
    send(1);
    expect_all_arrive();
    run_for(both(), 5 * ms);
  }

  MemoryNetwork network_;
  // The port of the second process that each one of the first process reaches, if any.
  std::array<unsigned, most_rails> joined_{0, 1, 2, 3};
  std::array<Rail, most_rails> rails_;
  MemoryProcess first_;
  MemoryProcess second_;
  Link* link_;
  uint64_t sent_ = 0;
};

TEST_F(RailsTest, FewMessagesGoByTheFirstRail) {
  connect();
  const uint64_t before = rails_[1].data_frames;
  for (unsigned i = 0; i < 20; ++i) {
    send(1, 8);
    expect_all_arrive();
  }
  EXPECT_EQ(rails_[1].data_frames, before);
}

// The first message goes by another rail, and the first one is used as soon as it works.
TEST_F(RailsTest, AConnectionOpensWithoutTheFirstRail) {
  rails_[0].frame_ns = rails_[1].frame_ns = 12'000;
  rails_[0].is_cut = true;
  const uint64_t begin_ns = virtual_now_ns;
  send(1);
  expect_all_arrive(100 * ms);
  EXPECT_LT(virtual_now_ns - begin_ns, 20 * ms);
  send(500);
  expect_all_arrive(200 * ms);
  EXPECT_EQ(rails_[0].data_frames, 0u);
  rails_[0].is_cut = false;
  send(100);
  run_for(both(), 1100 * ms);
  send(1000);
  expect_all_arrive();
  EXPECT_GT(rails_[0].data_frames, 200u);
  EXPECT_EQ(second_.transport().counters().connections_opened, 1u);
}

// Its first rail loses all frames behind that one.
TEST_F(RailsTest, AConnectionOpensThoughItsRailIsCutMeanwhile) {
  for (const FrameType last : {FrameType::hello, FrameType::challenge, FrameType::connect}) {
    MemoryProcess caller(network_, {1, 100 + static_cast<uint32_t>(last)}, {}, 1472, 256 * 1024,
                         false, 2);
    network_.script = [last](const LinkAddress&, const LinkAddress& to, const Frame& frame) {
      const bool is_lost = rail_of(to) == 0 && header_of(frame).type > last;
      return std::vector<MemoryNetwork::Copy>(is_lost ? 0 : 1, {frame});
    };
    const size_t before = second_.messages.size();
    Link* const link = caller.connect(second_id);
    ASSERT_TRUE(run_until(
        {&caller, &second_}, [&] { return caller.send(link, numbered_put(7)) == SendStatus::sent; },
        500 * ms));
    ASSERT_TRUE(run_until(
        {&caller, &second_}, [&] { return second_.messages.size() == before + 1; }, 500 * ms));
    network_.script = nullptr;
    EXPECT_TRUE(caller.failed.empty());
  }
}

// Times of a frame on the rails.
struct Rates {
  uint64_t first_ns;
  uint64_t second_ns;
};
class RatedRailsTest : public RailsTest, public testing::WithParamInterface<Rates> {};

TEST_P(RatedRailsTest, ALongStreamTakesTheSumOfTheRails) {
  const auto [first_ns, second_ns] = GetParam();
  rails_[0].frame_ns = first_ns;
  rails_[1].frame_ns = second_ns;
  connect();
  const uint64_t begin_ns = virtual_now_ns;
  send(6000, 1300);
  expect_all_arrive();
  const auto spent_ns = static_cast<double>(virtual_now_ns - begin_ns);
  const double frames_per_ns =
      1 / static_cast<double>(first_ns) + 1 / static_cast<double>(second_ns);
  const double least_ns = 6000 * 1400.0 / 1472 / frames_per_ns;
  EXPECT_LT(spent_ns * 0.9, least_ns) << rails_[0].data_frames << " and " << rails_[1].data_frames;
}
INSTANTIATE_TEST_SUITE_P(, RatedRailsTest,
                         testing::Values(Rates{12'000, 12'000}, Rates{12'000, 4'000},
                                         Rates{4'000, 12'000}, Rates{120'000, 40'000},
                                         Rates{40'000, 120'000}, Rates{120'000, 12'000}));

TEST_F(RailsTest, ARailThatIsCutIsReplacedAndComesBack) {
  rails_[0].frame_ns = rails_[1].frame_ns = 12'000;
  connect();
  for (const unsigned cut : {0u, 1u}) {
    send(500);
    rails_[cut].is_cut = true;
    const uint64_t begin_ns = virtual_now_ns;
    send(500);
    expect_all_arrive(300 * ms);
    EXPECT_LT(virtual_now_ns - begin_ns, 100 * ms);
    send(30'000, 100);
    expect_all_arrive();
    run_for(both(), 400 * ms);
    EXPECT_EQ(first_.transport().counters().paths_back, cut);
    rails_[cut].is_cut = false;
    send(100);
    run_for(both(), 1100 * ms);
    send(1000);
    expect_all_arrive();
    const uint64_t before = rails_[cut].data_frames;
    send(1000);
    expect_all_arrive();
    EXPECT_GT(rails_[cut].data_frames, before + 200);
  }
}

// Otherwise the connection would change its rail again and again.
TEST_F(RailsTest, ARailThatLosesLongFramesIsNotUsed) {
  rails_[1].longest = 1000;
  rails_[0].frame_ns = rails_[1].frame_ns = 12'000;
  connect();
  send(2000, 1300);
  expect_all_arrive();
  EXPECT_EQ(rails_[1].data_frames, 0u);
  EXPECT_EQ(first_.transport().counters().timeouts, 0u);
}

TEST_F(RailsTest, ARailBeyondThoseInUseStandsInForOneThatIsLost) {
  first_.link().use_rails(1);
  rails_[0].frame_ns = rails_[1].frame_ns = 12'000;
  connect();
  send(1000, 1300);
  expect_all_arrive();
  EXPECT_EQ(rails_[1].data_frames, 0u);
  rails_[0].is_cut = true;
  send(500, 1300);
  expect_all_arrive(1000 * ms);
  EXPECT_GE(rails_[1].data_frames, 400u);
}

TEST_F(RailsTest, WithoutAnyRailThePeerTimesOut) {
  connect();
  rails_[0].is_cut = rails_[1].is_cut = true;
  send(1);
  ASSERT_TRUE(run_until(
      both(), [&] { return !first_.failed.empty(); }, 20'000 * ms));
}

TEST_F(RailsTest, AnIdleConnectionSendsNoProbes) {
  rails_[1].is_cut = true;
  connect();
  run_for(both(), 10'000 * ms);
  const uint64_t before = rails_[0].frames + rails_[1].frames;
  run_for(both(), 10'000 * ms);
  EXPECT_EQ(rails_[0].frames + rails_[1].frames, before);
}

// Answers go by the rail by which the peer was heard, so that they arrive though the first one is
// lost for a process that only receives.
TEST_F(RailsTest, AnswersFollowTheSender) {
  connect();
  rails_[0].is_cut = true;
  for (unsigned i = 0; i < 50; ++i) {
    send(1);
    expect_all_arrive(500 * ms);
  }
  EXPECT_LE(first_.transport().counters().timeouts, 2u);
}

class CrossedRailsTest : public RailsTest {
 protected:
  CrossedRailsTest() : RailsTest(4) {}

  void expect_all_used(const std::vector<unsigned>& rails) {
    for (Rail& rail : rails_) rail.frame_ns = 12'000;
    connect();
    run_for(both(), 500 * ms);
    send(4000, 1300);
    expect_all_arrive();
    for (const unsigned rail : rails) EXPECT_GT(rails_[rail].data_frames, 500u) << rail;
  }
};

// Nothing but probes can show which ports reach each other.
TEST_F(CrossedRailsTest, PortsThatReachEachOtherArePaired) {
  joined_ = {0, 3, 1, 2};
  expect_all_used({0, 1, 2, 3});
}

TEST_F(CrossedRailsTest, APortThatReachesNoneIsNotUsed) {
  joined_ = {0, 2, most_rails, 1};
  expect_all_used({0, 1, 3});
  EXPECT_EQ(rails_[2].frames, 0u);
}

// There would be no room for them in the frame.
TEST_F(RailsTest, AHandshakeWithTooManyRailsIsRefused) {
  for (const unsigned rails : {0u, most_rails, most_rails + 1, 255u}) {
    FakePeer peer(network_, {3, 30 + rails}, second_id);
    HandshakeBody body = peer.body();
    body.rail_count = static_cast<uint8_t>(rails);
    for (uint8_t i = 0; i < most_rails; ++i) body.rails[i].bytes[0] = i;
    HandshakeBody answer{};
    peer.call(FrameType::hello, body);
    second_.poll();
    ASSERT_TRUE(peer.take_answer(FrameType::challenge, answer));
    body.cookie = answer.cookie;
    peer.call(FrameType::connect, body);
    second_.poll();
    EXPECT_EQ(peer.take_answer(FrameType::accept, answer), rails <= most_rails) << rails;
  }
}

TEST(PathHealth, ProbesGoMoreAndMoreRarelyUntilOneIsAnswered) {
  PathHealth health;
  EXPECT_TRUE(health.is_live());
  EXPECT_EQ(health.due_ns(false), PathHealth::never);
  health.suspend(ms);
  std::vector<uint64_t> gaps;
  for (uint32_t number = 100; number < 120; ++number) {
    const uint64_t due_ns = health.due_ns(false);
    health.probed(number, due_ns);
    gaps.push_back(health.due_ns(false) - due_ns);
  }
  EXPECT_EQ(gaps[0], PathHealth::first_gap_ns);
  EXPECT_EQ(gaps[1], 2 * PathHealth::first_gap_ns);
  EXPECT_EQ(gaps.back(), PathHealth::longest_gap_ns);
  EXPECT_EQ(health.due_ns(true), PathHealth::never) << "for nobody";
  EXPECT_FALSE(health.is_answer(99)) << "of an earlier time";
  EXPECT_FALSE(health.is_answer(120));
  EXPECT_TRUE(health.is_answer(100));
  EXPECT_EQ(health.place_of(119), 19u);
  health.revive();
  EXPECT_TRUE(health.is_live());
}

TEST(PathHealth, ALossIsReportedOnceAndTheReturnToo) {
  PathHealth health;
  health.suspend(0);
  for (uint32_t number = 0; number < 6; ++number) health.probed(number, number * ms);
  using Change = PathHealth::Change;
  EXPECT_EQ(health.take_change(true, PathHealth::lost_after_ns - 1), Change::none)
      << "a short outage";
  EXPECT_EQ(health.take_change(false, PathHealth::lost_after_ns), Change::none) << "a silent peer";
  EXPECT_EQ(health.take_change(true, PathHealth::lost_after_ns), Change::lost);
  EXPECT_EQ(health.take_change(true, 2 * PathHealth::lost_after_ns), Change::none);
  health.revive();
  EXPECT_EQ(health.take_change(true, 3 * PathHealth::lost_after_ns), Change::back);
  EXPECT_EQ(health.take_change(true, 3 * PathHealth::lost_after_ns), Change::none);
}

// A port that can be armed, or has something to do.
struct ArmedPort {
  explicit ArmedPort(bool busy) : is_busy(busy) {}
  bool arm() {
    armed = !is_busy;
    return armed;
  }
  void disarm() { armed = false; }
  const bool is_busy;
  bool armed = false;
};

TEST(ArmRailsTest, AllAreArmedOrNone) {
  for (size_t busy = 0; busy <= 3; ++busy) {
    std::vector<std::unique_ptr<ArmedPort>> rails;
    for (size_t i = 0; i < 3; ++i) rails.push_back(std::make_unique<ArmedPort>(i == busy));
    EXPECT_EQ(arm_rails(rails), busy == 3);
    for (const auto& rail : rails) EXPECT_EQ(rail->armed, busy == 3);
  }
}

TEST(JoinDescriptorTest, EachMakesTheJoinedOneReadable) {
  Descriptor joined;
  const Descriptor events[] = {make_event(), make_event()};
  for (const Descriptor& event : events) ASSERT_TRUE(join_descriptor(joined, event.get()));
  EXPECT_FALSE(join_descriptor(joined, -1));
  const auto is_readable = [&] {
    pollfd waited{joined.get(), POLLIN, 0};
    return poll(&waited, 1, 0) == 1;
  };
  for (const Descriptor& event : events) {
    EXPECT_FALSE(is_readable());
    uint64_t one = 1;
    ASSERT_EQ(write(event.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    EXPECT_TRUE(is_readable());
    ASSERT_EQ(read(event.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
}

TEST(NameOfRailTest, IsAPartOfTheNameOfTheDevice) {
  EXPECT_EQ(name_of_rail("mlx5_0:1+mlx5_1:1+x", 0), "mlx5_0:1");
  EXPECT_EQ(name_of_rail("mlx5_0:1+mlx5_1:1+x", 1), "mlx5_1:1");
  EXPECT_EQ(name_of_rail("mlx5_0:1+mlx5_1:1+x", 2), "x");
  EXPECT_EQ(name_of_rail("mlx5_0:1+mlx5_1:1+x", 3), "");
  EXPECT_EQ(name_of_rail("", 1), "");
}

}  // namespace
}  // namespace lintel::test

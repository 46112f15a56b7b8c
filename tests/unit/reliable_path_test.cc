// Paths that lose long frames, from the beginning or suddenly, in one or both directions: every
// message arrives once, in order and intact, and the frames become as long as the path takes.
#include <algorithm>
#include <random>

#include "support/modules.h"
#include "unit/reliable_test_support.h"

namespace lintel::test {
namespace {

constexpr uint64_t ms = 1'000'000;
constexpr uint64_t second = 1'000 * ms;

enum class Frames { copied, in_place, authenticated, encrypted };

class ReliablePath : public ConnectedPair, public testing::WithParamInterface<Frames> {
 protected:
  ReliablePath() : ConnectedPair(GetParam() == Frames::in_place, settings()) {}
  static bool seals() { return GetParam() >= Frames::authenticated; }
  static ReliableSettings settings() {
    ReliableSettings settings;
    // The numbers of frames and the keys change in the middle of a test.
    settings.first_sequence = UINT32_MAX - 100;
    if (!seals() || !use_built_modules()) return settings;
    settings.job_key = "a secret that is long enough not to be stretched";
    settings.security = GetParam() == Frames::authenticated ? NetworkSecurity::authenticated
                                                            : NetworkSecurity::encrypted;
    settings.key_epoch_bits = 7;
    return settings;
  }
  void SetUp() override {
    if (seals() && !use_built_modules()) GTEST_SKIP() << no_crypto_module;
    install_fault_handler();
    ConnectedPair::SetUp();
    network_.script = [this](const LinkAddress& from, const LinkAddress&, const Frame& frame) {
      const uint32_t limit = from == address_of(first_id) ? limit_ : limit_back_;
      longest_ = std::max(longest_, from == address_of(first_id) ? frame.size() : 0);
      const bool lost = frame.size() > limit || dice_() % 1000 < lost_per_mille_;
      const uint64_t late_ns = dice_() % 1000 < late_per_mille_ ? 60'000 : 0;
      return lost ? std::vector<MemoryNetwork::Copy>{}
                  : std::vector<MemoryNetwork::Copy>{{frame, late_ns}};
    };
  }
  // Whether all messages that were sent have arrived, within the time.
  [[nodiscard]] bool all_arrive(uint64_t limit_ns) {
    return run_until(
        all_, [this] { return second_.messages.size() == sent_.size(); }, limit_ns);
  }
  // Messages of all sizes and kinds. Data keep their memory until they have arrived.
  void send_some(unsigned count) {
    const uint32_t most = link_->max_data_bytes;
    for (unsigned i = 0; i < count && !HasFatalFailure(); ++i) {
      MessageHeader header = numbered_put(sent_.size());
      const bool data = dice_() % 3 == 0;
      if (data) header.kind = MessageKind::data;
      // The core cuts data before a change of the path, and sends them behind it.
      const uint32_t length = data ? most : dice_() % 8193;
      sent_.push_back(numbered_bytes(sent_.size(), length));
      send(header);
    }
  }
  // The message that was appended to sent_, whose memory stays.
  void send(const MessageHeader& header) {
    const Piece piece{sent_.back().data(), sent_.back().size()};
    SendStatus status = SendStatus::queue_full;
    ASSERT_TRUE(run_until(all_, [&] {
      status = first_.transport().send(*link_, header, &piece, 1);
      return status != SendStatus::queue_full;
    }));
    ASSERT_EQ(status, SendStatus::sent);
  }
  // Data may come before earlier messages; each has its number.
  void expect_messages() {
    ASSERT_TRUE(all_arrive(60 * second));
    std::vector<bool> seen(sent_.size());
    uint64_t last_put = 0;
    for (const MemoryProcess::Message& message : second_.messages) {
      const uint64_t number = message.header.match_bits;
      ASSERT_LT(number, sent_.size());
      EXPECT_FALSE(seen[number]) << number;
      seen[number] = true;
      EXPECT_EQ(message.payload, sent_[number]) << number;
      if (message.header.kind != MessageKind::put) continue;
      EXPECT_GE(number, last_put);
      last_put = number;
    }
    EXPECT_TRUE(first_.failed.empty());
    EXPECT_TRUE(second_.failed.empty());
    EXPECT_EQ(second_.transport().counters().malformed, 0u);
    EXPECT_EQ(second_.transport().counters().damaged, 0u);
    EXPECT_TRUE(run_until(all_, [this] { return first_.transport().all_delivered(); }));
    run_for(all_, 5 * second);
    EXPECT_EQ(first_.transport().frame_memory_used(), 0u);
    EXPECT_EQ(second_.transport().frame_memory_used(), 0u);
  }
  uint64_t narrowed() { return first_.transport().counters().paths_narrowed; }

  uint32_t limit_ = UINT32_MAX;  // from the first to the second
  uint32_t limit_back_ = UINT32_MAX;
  unsigned lost_per_mille_ = 0;
  unsigned late_per_mille_ = 0;
  size_t longest_ = 0;
  std::mt19937 dice_{1};
  std::vector<std::vector<std::byte>> sent_;
};

TEST_P(ReliablePath, OneThatNeverTookLongFramesIsUsableWithinASecond) {
  limit_ = limit_back_ = 1472;
  sent_.push_back(numbered_bytes(0, 8000));
  send(numbered_put(0));
  EXPECT_TRUE(all_arrive(second));
  EXPECT_EQ(narrowed(), 1u);
  EXPECT_GT(first_.transport().counters().frames_in_parts, 0u);
  send_some(200);
  run_for(all_, 2 * second);
  expect_messages();
  EXPECT_EQ(narrowed(), 1u);
  const uint32_t longest_data = 1472 - message_frame_overhead - (seals() ? 16 : 0);
  EXPECT_LE(link_->max_data_bytes, longest_data);
  EXPECT_GE(link_->max_data_bytes + 24, longest_data) << "it was measured";
  longest_ = 0;
  send_some(200);
  expect_messages();
  EXPECT_LE(longest_, 1472u);
}

// Frames in flight, queued frames, and data that the core cuts before it knows.
TEST_P(ReliablePath, FramesUnderWayGoInParts) {
  for (unsigned round = 0; round < 5 && !HasFatalFailure(); ++round) {
    limit_ = limit_back_ = UINT32_MAX;
    send_some(30);
    limit_ = 1000 + 537 * round;
    limit_back_ = round % 2 == 0 ? limit_ : UINT32_MAX;
    send_some(60);
    expect_messages();
    limit_ = UINT32_MAX;
    // With traffic, the path is soon known to be wide again.
    for (unsigned i = 0; i < 25; ++i) {
      send_some(1);
      run_for(all_, second);
    }
    EXPECT_GT(link_->max_data_bytes, 8000u) << round;
  }
  EXPECT_GE(narrowed(), 5u);
}

TEST_P(ReliablePath, ThatLosesAndReordersAndChangesAllTheTime) {
  lost_per_mille_ = 50;
  late_per_mille_ = 100;
  for (const uint32_t limit : {9000, 1472, 520, 700, 4000, 9000, 600}) {
    limit_ = limit_back_ = limit;
    send_some(100);
    ASSERT_TRUE(all_arrive(60 * second)) << limit;
  }
  expect_messages();
}

// Only short frames go back: acknowledgements.
TEST_P(ReliablePath, ThatIsNarrowInTheOtherDirectionIsNoObstacle) {
  limit_back_ = 600;
  send_some(300);
  expect_messages();
  EXPECT_EQ(narrowed(), 0u);
}

TEST_P(ReliablePath, AnOutageAndRandomLossesAreNoBlackHole) {
  limit_ = limit_back_ = 0;
  sent_.push_back(numbered_bytes(0, 8000));
  send(numbered_put(0));
  run_for(all_, 3 * second);
  limit_ = limit_back_ = UINT32_MAX;
  lost_per_mille_ = 100;
  send_some(2000);
  expect_messages();
  EXPECT_EQ(narrowed(), 0u);
}

std::string frames_name(const testing::TestParamInfo<Frames>& info) {
  static constexpr const char* names[] = {"copied", "in_place", "authenticated", "encrypted"};
  return names[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Links, ReliablePath,
                         testing::Values(Frames::copied, Frames::in_place, Frames::authenticated,
                                         Frames::encrypted),
                         frames_name);

}  // namespace
}  // namespace lintel::test

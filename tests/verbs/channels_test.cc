// The queue pairs of a process, and links with unfinished work.
#include "verbs/channels.h"

#include "verbs_test_support.h"

namespace lintel {
namespace {

class ChannelsTest : public test::VerbsDeviceTest {
 protected:
  static constexpr uint32_t most = 2;

  void SetUp() override {
    VerbsDeviceTest::SetUp();
    std::string reason;
    ASSERT_TRUE(receives_.emplace().open(*device_, 16, 512, 0, reason)) << reason;
    ASSERT_TRUE(completions_.emplace(*device_).open(16, SendQueue::capacity, reason)) << reason;
    channels_.emplace(*device_, *completions_, *receives_, requests_, unfinished_, most);
  }
  void TearDown() override {
    channels_.reset();
    completions_.reset();
    receives_.reset();
    VerbsDeviceTest::TearDown();
  }
  Channel* make(VerbsLink& link) {
    Channel* const channel = channels_->make(link, {SendQueue::capacity, 128, 1});
    if (channel != nullptr) channel->connected = true;
    return channel;
  }

  ChannelRequests requests_{true};
  UnfinishedLinks unfinished_;
  std::optional<ReceiveBuffers> receives_;
  std::optional<CompletionQueue> completions_;
  std::optional<Channels> channels_;
  VerbsLink one_, other_;
};

TEST_F(ChannelsTest, TheyAreFoundByIndexAndNumberUntilTheyAreRemoved) {
  Channel* const first = make(one_);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(one_.channel, first);
  EXPECT_FALSE(channels_->is_full());
  Channel* const second = make(other_);
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(channels_->is_full());
  const uint32_t number = first->number, index = first->index;
  ASSERT_NE(channels_->find(index, number), nullptr);
  EXPECT_EQ(channels_->find(index, number)->link, &one_);
  EXPECT_EQ(channels_->find(second->index, number), nullptr);
  EXPECT_EQ(channels_->find(100, number), nullptr);
  EXPECT_EQ(channels_->find(second->number)->link, &other_);
  first->queue_pair.reset();
  channels_->remove(one_);
  EXPECT_EQ(channels_->find(index, number), nullptr);
  EXPECT_EQ(channels_->find(number), nullptr);
  EXPECT_EQ(one_.channel, nullptr);
  EXPECT_EQ(channels_->count(), 1u);
  ASSERT_NE(make(one_), nullptr);
  EXPECT_EQ(one_.channel->index, index);
}

TEST_F(ChannelsTest, ARefusalOfTheDeviceLeavesNothingBehind) {
  fake_verbs::fail_call("ibv_create_qp", ENOMEM, 1, 2);
  EXPECT_EQ(make(one_), nullptr);
  EXPECT_EQ(one_.channel, nullptr);
  EXPECT_EQ(channels_->count(), 0u);
}

TEST_F(ChannelsTest, AStoppedOneSendsNothingMoreAndItsLinkIsUnfinished) {
  const Channel* const channel = make(one_);
  ASSERT_NE(channel, nullptr);
  one_.path = Path::queue_pair;
  one_.pending = VerbsLink::pending_change | VerbsLink::pending_offer;
  channels_->stop(one_, "a reason");
  channels_->stop(one_, "another reason");
  EXPECT_STREQ(channel->stop.reason, "a reason");
  EXPECT_EQ(channels_->stopped(), 1u);
  EXPECT_EQ(one_.path, Path::stopping);
  EXPECT_EQ(one_.pending, VerbsLink::pending_offer);
  EXPECT_EQ(fake_verbs::state_of(channel->number), IBV_QPS_ERR);
  EXPECT_FALSE(unfinished_.is_empty());
}

TEST_F(ChannelsTest, UnfinishedLinksAreServedUntilTheyAreFinished) {
  unfinished_.add(one_);
  unfinished_.add(one_);
  unfinished_.add(other_);
  int served = 0;
  unfinished_.serve([&](VerbsLink& link) {
    ++served;
    return &link == &one_;
  });
  EXPECT_EQ(served, 2);
  EXPECT_FALSE(one_.listed);
  EXPECT_TRUE(other_.listed);
  unfinished_.serve([](VerbsLink&) { return true; });
  EXPECT_TRUE(unfinished_.is_empty());
}

TEST_F(ChannelsTest, IdleOnesAreStoppedAfterTheirTime) {
  IdleChannels idle(*channels_, 1'000'000);
  Channel* const channel = make(one_);
  ASSERT_NE(channel, nullptr);
  ASSERT_NE(make(other_), nullptr);
  const auto end = std::chrono::steady_clock::now() + test::wait_deadline;
  while (!channel->stop.begun && std::chrono::steady_clock::now() < end) {
    ++other_.channel->received.count;
    idle.look();
  }
  EXPECT_TRUE(channel->stop.begun);
  EXPECT_FALSE(other_.channel->stop.begun);
}

TEST_F(ChannelsTest, OneInUseIsNotStoppedForAnotherPeer) {
  IdleChannels idle(*channels_, 10'000'000'000);
  ASSERT_NE(make(one_), nullptr);
  EXPECT_FALSE(idle.stop_longest_idle());
  one_.channel->last_use.idle_since_ns = 1;
  one_.channel->accesses.posted = 1;
  EXPECT_FALSE(idle.stop_longest_idle());
  one_.channel->accesses.posted = 0;
  EXPECT_TRUE(idle.stop_longest_idle());
  EXPECT_TRUE(one_.channel->stop.begun);
}

}  // namespace
}  // namespace lintel

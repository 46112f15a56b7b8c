// The queue pairs of a process, and links with unfinished work.
#include "verbs/channels.h"

#include <cstring>

#include <gtest/gtest.h>

#include "fake_datagrams.h"
#include "verbs/agreement.h"
#include "verbs/channel_requests.h"
#include "verbs_test_support.h"

namespace lintel {
namespace {

class ChannelsTest : public test::VerbsDeviceTest {
 protected:
  static constexpr uint32_t most = 2;

  void SetUp() override {
    VerbsDeviceTest::SetUp();
    SetUpParts();
  }
  void SetUpParts() {
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

// It would wait for packets on their way.
TEST_F(ChannelsTest, TheSoftwareDeviceDestroysAQueuePairLater) {
  for (const uint32_t vendor : {0u, vendor_of_rxe}) {
    TearDown();
    open({.vendor = vendor});
    SetUpParts();
    Channel* const channel = make(one_);
    ASSERT_NE(channel, nullptr);
    channels_->release(std::move(channel->queue_pair));
    channels_->remove(one_);
    channels_->destroy_released();
    const std::vector<uint32_t> left = fake_verbs::queue_pairs(IBV_QPT_RC);
    EXPECT_EQ(left.size(), vendor == 0 ? 0u : 1u);
  }
  channels_.reset();
  EXPECT_TRUE(fake_verbs::queue_pairs(IBV_QPT_RC).empty());
}

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

// Requests of other threads to the poller about queue pairs.

bool is_pending(const ChannelRequests& requests) {
  return requests.is_pending(std::memory_order_relaxed);
}

ibv_async_event event_of(ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  return event;
}

TEST(ChannelRequestsTest, ALinkRequestsOnceAndOnlyWithoutAQueuePair) {
  ChannelRequests requests(true);
  VerbsLink link;
  requests.request_channel(link);
  EXPECT_TRUE(link.wants_channel);
  EXPECT_TRUE(is_pending(requests));
  static_cast<void>(requests.take());
  EXPECT_FALSE(is_pending(requests));
  requests.request_channel(link);
  EXPECT_FALSE(is_pending(requests));
}

TEST(ChannelRequestsTest, WhereNoneMayBeNoneIsRequested) {
  ChannelRequests requests(false);
  VerbsLink link;
  requests.request_channel(link);
  EXPECT_FALSE(link.wants_channel);
}

TEST(ChannelRequestsTest, ARequestIsRepeatedAfterSoManyMessagesOrNever) {
  ChannelRequests requests(true);
  VerbsLink link;
  link.messages_until_request = 2;
  for (int message = 0; message < 2; ++message) requests.request_channel(link);
  EXPECT_FALSE(link.wants_channel);
  requests.request_channel(link);
  EXPECT_TRUE(link.wants_channel);
  link.wants_channel = false;
  link.messages_until_request = ChannelRequests::never;
  for (int message = 0; message < 1000; ++message) requests.request_channel(link);
  EXPECT_FALSE(link.wants_channel);
}

TEST(ChannelRequestsTest, NothingIsSentAfterAskingToStop) {
  ChannelRequests requests(true);
  VerbsLink link;
  link.path = Path::queue_pair;
  requests.ask_to_stop(link, "a reason");
  EXPECT_EQ(link.path, Path::stopping);
  EXPECT_STREQ(link.stop_because, "a reason");
  EXPECT_TRUE(is_pending(requests));
}

TEST(ChannelRequestsTest, EventsNameABrokenQueuePairOrASharedQueue) {
  ChannelRequests requests(true);
  ibv_cq own{}, other{};
  ibv_srq receives{};
  requests.watch(&own, &receives, 0);
  ibv_async_event event = event_of(IBV_EVENT_CQ_ERR);
  event.element.cq = &other;
  requests.on_async_event(event);
  requests.on_async_event(event_of(IBV_EVENT_PORT_ERR));
  EXPECT_FALSE(is_pending(requests));
  event.element.cq = &own;
  requests.on_async_event(event);
  EXPECT_TRUE(is_pending(requests));
  EXPECT_TRUE(requests.take().shared_queue);
  event = event_of(IBV_EVENT_SRQ_ERR);
  event.element.srq = &receives;
  requests.on_async_event(event);
  EXPECT_TRUE(requests.take().shared_queue);
  ibv_qp pair{};
  pair.qp_num = 17;
  event = event_of(IBV_EVENT_QP_FATAL);
  event.element.qp = &pair;
  requests.on_async_event(event);
  const ChannelRequests::Broken broken = requests.take();
  EXPECT_EQ(broken.queue_pair, 17u);
  EXPECT_FALSE(broken.shared_queue);
  EXPECT_EQ(requests.take().queue_pair, 0u);
  EXPECT_EQ(requests.events(), 5u);
  // With other ports that take over.
  requests.watch(&own, &receives, 2);
  event = event_of(IBV_EVENT_PORT_ERR);
  event.element.port_num = 1;
  requests.on_async_event(event);
  EXPECT_FALSE(is_pending(requests));
  event.element.port_num = 2;
  requests.on_async_event(event);
  EXPECT_TRUE(is_pending(requests));
  EXPECT_TRUE(requests.take().port);
  EXPECT_FALSE(requests.take().port);
}

// The messages by which both ends agree on a queue pair.

class AgreementSenderTest : public testing::Test {
 protected:
  void SetUp() override {
    link_.datagrams = &datagrams_.link;
    channel_.number = 7;
    channel_.peer.number = 9;
    channel_.index = 3;
    channel_.received.count = 1000;
    link_.channel = &channel_;
  }
  struct Sent {
    Agreement kind;
    AgreementBody body;
  };
  Sent sent(size_t i) {
    Sent result{};
    EXPECT_LT(i, datagrams_.messages.size());
    if (i >= datagrams_.messages.size()) return result;
    const auto& message = datagrams_.messages[i];
    EXPECT_EQ(message.header.kind, MessageKind::connection);
    EXPECT_EQ(message.payload.size(), sizeof result.body);
    result.kind = static_cast<Agreement>(message.header.operation);
    std::memcpy(&result.body, message.payload.data(), sizeof result.body);
    return result;
  }

  test::FakeDatagrams datagrams_;
  UnfinishedLinks unfinished_;
  AgreementSender sender_{datagrams_, unfinished_, 4096};
  VerbsLink link_;
  Channel channel_;
};

TEST_F(AgreementSenderTest, TheyNameBothEndsAndWhatHasArrived) {
  sender_.schedule(link_, VerbsLink::pending_resume);
  EXPECT_FALSE(unfinished_.is_empty());
  EXPECT_TRUE(sender_.send_pending(link_));
  const Sent resume = sent(0);
  EXPECT_EQ(resume.kind, Agreement::resume);
  EXPECT_EQ(resume.body.version, agreement_version);
  EXPECT_EQ(resume.body.sender_number, 7u);
  EXPECT_EQ(resume.body.receiver_number, 9u);
  EXPECT_EQ(resume.body.channel_index, 3u);
  EXPECT_EQ(resume.body.received, 1000u);
  EXPECT_EQ(resume.body.eager_bytes, 4096u);
  EXPECT_TRUE(sender_.send_pending(link_));
  EXPECT_EQ(datagrams_.messages.size(), 1u);
}

TEST_F(AgreementSenderTest, WithoutRoomTheyAreSentLaterInTheirOrder) {
  datagrams_.status = SendStatus::queue_full;
  sender_.schedule(link_, VerbsLink::pending_loss);
  sender_.schedule(link_, VerbsLink::pending_offer);
  EXPECT_FALSE(sender_.send_pending(link_));
  datagrams_.status = SendStatus::sent;
  EXPECT_TRUE(sender_.send_pending(link_));
  EXPECT_EQ(sent(0).kind, Agreement::offer);
  EXPECT_EQ(sent(1).kind, Agreement::loss);
}

TEST_F(AgreementSenderTest, MessagesGoOverTheQueuePairOnceThePeerWasTold) {
  datagrams_.status = SendStatus::queue_full;
  sender_.begin_change(link_);
  EXPECT_FALSE(sender_.send_pending(link_));
  EXPECT_EQ(link_.path, Path::changing);
  datagrams_.status = SendStatus::sent;
  EXPECT_TRUE(sender_.send_pending(link_));
  EXPECT_EQ(link_.path, Path::queue_pair);
}

TEST_F(AgreementSenderTest, APeerThatIsGoneIsOwedNothing) {
  datagrams_.status = SendStatus::peer_failed;
  sender_.begin_change(link_);
  EXPECT_TRUE(sender_.send_pending(link_));
  EXPECT_EQ(link_.pending, 0);
  EXPECT_EQ(link_.path, Path::changing);
}

TEST_F(AgreementSenderTest, RefusalsNameTheQueuePairOfThePeer) {
  sender_.decline(link_, 33);
  sender_.deny(link_, 44, 55);
  EXPECT_TRUE(sender_.send_pending(link_));
  EXPECT_EQ(sent(0).kind, Agreement::decline);
  EXPECT_EQ(sent(0).body.receiver_number, 33u);
  EXPECT_EQ(sent(1).kind, Agreement::resume);
  EXPECT_EQ(sent(1).body.sender_number, 44u);
  EXPECT_EQ(sent(1).body.receiver_number, 55u);
  EXPECT_EQ(sent(1).body.received, 0u);
}

}  // namespace
}  // namespace lintel

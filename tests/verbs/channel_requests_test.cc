// Requests of other threads to the poller about queue pairs.
#include "verbs/channel_requests.h"

#include <gtest/gtest.h>

namespace lintel {
namespace {

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
  requests.watch(&own, &receives);
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
}

}  // namespace
}  // namespace lintel

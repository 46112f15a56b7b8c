// The send queue of a queue pair: requests that the device has, requests held back, and when a
// completion is requested.
#include "channel_test_support.h"

namespace lintel {
namespace {

class SendQueueTest : public test::ChannelTest {
 protected:
  // Posts a message without payload.
  bool post(uint32_t index, bool signalled = false) {
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_INLINE;
    return queue().post(request, {RequestKind::message, index}, signalled);
  }
  SendQueue& queue() { return channels_[0].queue; }
};

TEST_F(SendQueueTest, RequestsRetireInTheOrderOfPosting) {
  for (uint32_t i = 0; i < 5; ++i) ASSERT_TRUE(post(10 + i, i == 4));
  EXPECT_EQ(queue().room(), SendQueue::capacity - 5);
  ibv_wc completion;
  ASSERT_TRUE(next_completion(IBV_WC_SEND, completion));
  const auto position = static_cast<uint32_t>(completion.wr_id);
  EXPECT_EQ(position, 4u);
  EXPECT_TRUE(queue().contains(position));
  EXPECT_FALSE(queue().contains(position + 1));
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(queue().retire().index, 10 + i);
  EXPECT_TRUE(queue().is_empty());
  EXPECT_FALSE(queue().contains(position));
}

TEST_F(SendQueueTest, OneOfSixteenAsksForACompletion) {
  for (uint32_t i = 0; i < 2 * SendQueue::signal_interval; ++i) ASSERT_TRUE(post(i));
  EXPECT_FALSE(queue().is_unsignalled());
  ibv_wc completion;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(next_completion(IBV_WC_SEND, completion));
  EXPECT_FALSE(next_completion(IBV_WC_SEND, completion));
  ASSERT_TRUE(post(0));
  EXPECT_TRUE(queue().is_unsignalled());
  queue().signal_next();
  ASSERT_TRUE(post(0));
  EXPECT_TRUE(next_completion(IBV_WC_SEND, completion));
}

TEST_F(SendQueueTest, HeldRequestsArePostedTogether) {
  auto chained = std::make_shared<unsigned>(0);
  fake_verbs::fail_request(IBV_WC_GENERAL_ERR, [chained](const fake_verbs::Request& request) {
    if (request.chained) ++*chained;
    return false;
  });
  links_[0].corks = 1;
  for (uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(post(i));
  EXPECT_EQ(fake_verbs::done(IBV_WR_SEND), 0u);
  links_[0].corks = 0;
  queue().flush();
  queue().flush();
  EXPECT_EQ(*chained, 3u);
  EXPECT_EQ(fake_verbs::done(IBV_WR_SEND), 4u);
  EXPECT_EQ(queue().room(), SendQueue::capacity - 4);
}

TEST_F(SendQueueTest, DiscardedRequestsAreNotPosted) {
  links_[0].corks = 1;
  ASSERT_TRUE(post(1));
  queue().discard_held();
  queue().flush();
  EXPECT_EQ(fake_verbs::done(IBV_WR_SEND), 0u);
  EXPECT_FALSE(queue().is_empty());
}

TEST_F(SendQueueTest, AfterARefusalThePollerIsAskedToStopTheQueuePair) {
  for (const bool held : {false, true}) {
    links_[0].path = Path::queue_pair;
    links_[0].stop_because = nullptr;
    links_[0].corks = held ? 1 : 0;
    const uint32_t room = queue().room();
    fake_verbs::fail_call("ibv_post_send", ENOMEM);
    EXPECT_EQ(post(1), held);  // a held request counts as posted
    queue().flush();
    EXPECT_EQ(queue().room(), held ? room - 1 : room);
    EXPECT_NE(links_[0].stop_because, nullptr);
    EXPECT_EQ(links_[0].path, Path::stopping);
  }
}

}  // namespace
}  // namespace lintel

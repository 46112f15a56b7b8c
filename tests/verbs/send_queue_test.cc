// The send queue of a queue pair: requests that the device has, requests held back, and when a
// completion is requested.
#include <poll.h>

#include "channel_test_support.h"
#include "fake_datagrams.h"
#include "verbs/channel.h"
#include "verbs/channels.h"
#include "verbs/message_sender.h"

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

// The completion queue that all queue pairs share.

TEST(CompletionQueueLimitTest, ItGrowsWithTheQueuePairsAsFarAsTheDeviceAllows) {
  fake_verbs::reset({.max_cqe = 15'000});
  {
    std::string reason;
    const std::shared_ptr<VerbsDevice> device = VerbsDevice::open({}, reason);
    ASSERT_NE(device, nullptr) << reason;
    CompletionQueue queue(*device);
    ASSERT_TRUE(queue.open(50, 100, reason)) << reason;
    EXPECT_EQ(queue.entries(), 6450u);
    EXPECT_TRUE(queue.reserve(64));
    EXPECT_EQ(queue.entries(), 6450u);
    EXPECT_TRUE(queue.reserve(65));
    EXPECT_EQ(queue.entries(), 12'850u);
    EXPECT_FALSE(queue.reserve(129));
    EXPECT_EQ(queue.entries(), 12'850u);
  }
  EXPECT_EQ(fake_verbs::in_use(), fake_verbs::InUse{});
}

class CompletionQueueTest : public test::ChannelTest {
 protected:
  void post() {
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_INLINE;
    ASSERT_TRUE(channels_[0].queue.post(request, {RequestKind::message, 0}, true));
  }
  [[nodiscard]] bool is_readable() const {
    pollfd descriptor{device_->events.descriptor(), POLLIN, 0};
    return ::poll(&descriptor, 1, 0) == 1;
  }
};

TEST_F(CompletionQueueTest, WhatArmingFindsIsTakenNextAndKeepsThePollerAwake) {
  ibv_wc completions[CompletionQueue::burst];
  EXPECT_EQ(shared_->take(completions), 0u);
  post();
  EXPECT_FALSE(shared_->arm());
  EXPECT_FALSE(shared_->arm());
  EXPECT_EQ(shared_->take(completions), 2u);  // the end of a send, and a receive
  EXPECT_EQ(shared_->take(completions), 0u);
}

TEST_F(CompletionQueueTest, ACompletionAfterArmingMakesTheDescriptorReadable) {
  ASSERT_TRUE(shared_->arm());
  EXPECT_FALSE(is_readable());
  post();
  EXPECT_TRUE(is_readable());
  device_->events.drain();
  ibv_wc completions[CompletionQueue::burst];
  EXPECT_EQ(shared_->take(completions), 2u);
}

// Messages over a queue pair, sent again as datagrams if the queue pair did not deliver them.

class MessageSenderTest : public test::ChannelTest {
 protected:
  void SetUp() override {
    ChannelTest::SetUp();
    std::string reason;
    ASSERT_TRUE(sender_.emplace().open(device_->pd, 192, large_bytes, reason)) << reason;
    links_[0].datagrams = &datagrams_.link;
  }
  void TearDown() override {
    for (Channel& channel : channels_) channel.queue_pair.reset();
    sender_.reset();
    ChannelTest::TearDown();
  }
  SendStatus send(uint64_t number, size_t bytes) {
    MessageHeader header{};
    header.kind = MessageKind::put;
    header.hdr_data = number;
    std::vector<std::byte> payload = test::bytes_of(number, bytes);
    const Piece piece{payload.data(), payload.size()};
    return sender_->send(links_[0], header, &piece, bytes == 0 ? 0 : 1);
  }

  std::optional<MessageSender> sender_;
  test::FakeDatagrams datagrams_;
};

TEST_F(MessageSenderTest, HeaderAndPayloadArrive) {
  for (const size_t bytes : {size_t{0}, size_t{8}, size_t{3000}}) {
    ASSERT_EQ(send(bytes, bytes), SendStatus::sent);
    ibv_wc completion;
    ASSERT_TRUE(next_completion(IBV_WC_RECV, completion));
    ASSERT_EQ(completion.byte_len, sizeof(MessageHeader) + bytes);
    MessageHeader header;
    const std::byte* const data = receives_->data(static_cast<uint32_t>(completion.wr_id));
    std::memcpy(&header, data, sizeof header);
    EXPECT_EQ(header.hdr_data, bytes);
    EXPECT_EQ(header.link_word, bytes);
    EXPECT_EQ(std::vector(data + sizeof header, data + completion.byte_len),
              test::bytes_of(bytes, bytes));
  }
}

TEST_F(MessageSenderTest, WhatDoesNotFitOrFindsNoRoomIsNotSent) {
  EXPECT_EQ(send(1, large_bytes), SendStatus::queue_full);
  while (channels_[0].queue.room() > SendQueue::reserved) ASSERT_EQ(send(1, 0), SendStatus::sent);
  EXPECT_EQ(send(1, 0), SendStatus::queue_full);
}

TEST_F(MessageSenderTest, UndeliveredMessagesAreSentAgainInOrder) {
  for (uint64_t number = 0; number < 6; ++number)
    ASSERT_EQ(send(number, number == 3 ? 2000 : number), SendStatus::sent);
  Channel& channel = channels_[0];
  for (uint64_t number = 0; number < 6; ++number)
    sender_->retire(links_[0], channel.queue.retire().index, number < 2);
  EXPECT_EQ(sender_->sent(), 2u);
  channel.stop.peer_received = 3;  // one more than this end has seen acknowledged
  datagrams_.status = SendStatus::queue_full;
  EXPECT_FALSE(sender_->send_again(links_[0], datagrams_));
  datagrams_.status = SendStatus::sent;
  EXPECT_TRUE(sender_->send_again(links_[0], datagrams_));
  ASSERT_EQ(datagrams_.messages.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(datagrams_.messages[i].header.hdr_data, 3 + i);
    EXPECT_EQ(datagrams_.messages[i].payload, test::bytes_of(3 + i, i == 0 ? 2000 : 3 + i));
  }
  EXPECT_EQ(sender_->sent_again(), 3u);
  EXPECT_TRUE(sender_->send_again(links_[0], datagrams_));
  EXPECT_EQ(datagrams_.messages.size(), 3u);
}

TEST_F(MessageSenderTest, NothingIsSentAgainToAPeerThatIsGone) {
  ASSERT_EQ(send(1, 10), SendStatus::sent);
  sender_->retire(links_[0], channels_[0].queue.retire().index, false);
  sender_->discard_unsent(links_[0]);
  EXPECT_TRUE(sender_->send_again(links_[0], datagrams_));
  EXPECT_TRUE(datagrams_.messages.empty());
}

TEST_F(MessageSenderTest, TheNextMessageInvalidatesAWindow) {
  const RemoteMemory windows[] = {{0, 8, exposure_key(5, channels_[1].number, 0x100)},
                                  {0, 8, exposure_key(5, channels_[1].number, 0x200)}};
  sender_->invalidate_windows(links_[0], windows, 1);
  EXPECT_EQ(channels_[0].sent.key_to_invalidate, windows[0].key);
  EXPECT_TRUE(channels_[0].queue.is_empty());
  // A second window needs a separate message.
  sender_->invalidate_windows(links_[0], windows + 1, 1);
  EXPECT_EQ(channels_[0].sent.key_to_invalidate, windows[1].key);
  EXPECT_FALSE(channels_[0].queue.is_empty());
  const RemoteMemory of_another{0, 8, exposure_key(5, channels_[1].number + 1, 0x300)};
  sender_->invalidate_windows(links_[0], &of_another, 1);
  EXPECT_EQ(channels_[0].sent.key_to_invalidate, windows[1].key);
}

// That would break the queue pair.
TEST_F(MessageSenderTest, NoMessageInvalidatesARegistration) {
  const RemoteMemory registration{0, 8,
                                  exposure_key(5 | registration_bit, channels_[1].number, 0x100)};
  sender_->invalidate_windows(links_[0], &registration, 1);
  EXPECT_EQ(channels_[0].sent.key_to_invalidate, 0u);
}

TEST_F(MessageSenderTest, ACompletionCanBeRequestedForWhatWasSent) {
  ASSERT_EQ(send(1, 10), SendStatus::sent);
  ibv_wc completion;
  EXPECT_FALSE(next_completion(IBV_WC_SEND, completion));
  sender_->request_completion(links_[0]);
  EXPECT_TRUE(next_completion(IBV_WC_SEND, completion));
  sender_->request_completion(links_[0]);
  EXPECT_FALSE(next_completion(IBV_WC_SEND, completion));
}

}  // namespace
}  // namespace lintel

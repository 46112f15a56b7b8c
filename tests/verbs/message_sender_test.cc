// Messages over a queue pair, sent again as datagrams if the queue pair did not deliver them.
#include "verbs/message_sender.h"

#include "channel_test_support.h"
#include "fake_datagrams.h"
#include "verbs/channel.h"

namespace lintel {
namespace {

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

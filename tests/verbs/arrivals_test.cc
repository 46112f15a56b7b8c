// Messages that arrive over a queue pair: delivered together, kept until their turn, or dropped.
#include <algorithm>

#include "verbs/completions.h"
#include "verbs/message_sender.h"
#include "verbs_test_support.h"

namespace lintel {
namespace {

class ArrivedMessages final : public test::QuietSink {
 public:
  void on_messages(Link&, const InboundMessage* messages, unsigned count) noexcept override {
    for (unsigned i = 0; i < count; ++i) numbers.push_back(messages[i].header.hdr_data);
    bursts.push_back(count);
  }

  std::vector<uint64_t> numbers;
  std::vector<unsigned> bursts;
};

// One link sends, the other receives.
class ArrivalsTest : public test::VerbsDeviceTest {
 protected:
  static constexpr uint32_t eager_bytes = 512;

  void SetUp() override {
    VerbsDeviceTest::SetUp();
    std::string reason;
    ASSERT_TRUE(sender_.emplace().open(device_->pd, 128, 1024, reason)) << reason;
    ASSERT_TRUE(receives_.emplace().open(*device_, 32, 1024, Arrivals::tag, reason)) << reason;
    ASSERT_TRUE(queue_.emplace(*device_).open(32, SendQueue::capacity, reason)) << reason;
    memory_.emplace(*device_);
    ASSERT_TRUE(exposures_.emplace(*device_, *memory_, requests_).open());
    channels_.emplace(*device_, *queue_, *receives_, requests_, unfinished_, 2);
    arrivals_.emplace(*receives_, *channels_, *exposures_, eager_bytes).open();
    Channel* const from = channels_->make(from_, {SendQueue::capacity, 128, 1});
    Channel* const to = channels_->make(to_, {SendQueue::capacity, 128, 1});
    ASSERT_TRUE(from != nullptr && to != nullptr);
    ASSERT_TRUE(from->queue_pair->connect(to->queue_pair->address(), reason)) << reason;
    ASSERT_TRUE(to->queue_pair->connect(from->queue_pair->address(), reason)) << reason;
    from->connected = to->connected = true;
    from->peer_index = to->index;
    from_.path = to_.path = Path::queue_pair;
    to->received.treatment = Receiving::hands_up;
  }
  void TearDown() override {
    arrivals_.reset();
    channels_.reset();
    exposures_.reset();
    memory_.reset();
    queue_.reset();
    receives_.reset();
    sender_.reset();
    VerbsDeviceTest::TearDown();
  }
  void send(uint64_t number, MessageKind kind = MessageKind::put, size_t bytes = 0) {
    MessageHeader header{};
    header.kind = kind;
    header.hdr_data = number;
    std::vector<std::byte> payload(bytes);
    const Piece piece{payload.data(), bytes};
    ASSERT_EQ(sender_->send(from_, header, &piece, bytes == 0 ? 0 : 1), SendStatus::sent);
  }
  // At most so many bytes of each.
  void take_all(uint32_t bytes = UINT32_MAX) {
    ibv_wc completions[CompletionQueue::burst];
    while (const unsigned count = queue_->take(completions)) {
      for (unsigned i = 0; i < count; ++i) {
        if ((completions[i].wr_id & Arrivals::tag) == 0) continue;
        completions[i].byte_len = std::min(completions[i].byte_len, bytes);
        arrivals_->take(completions[i], sink_);
      }
    }
  }

  ChannelRequests requests_{true};
  UnfinishedLinks unfinished_;
  std::optional<MessageSender> sender_;
  std::optional<ReceiveBuffers> receives_;
  std::optional<CompletionQueue> queue_;
  std::optional<DeviceMemory> memory_;
  std::optional<Exposures> exposures_;
  std::optional<Channels> channels_;
  std::optional<Arrivals> arrivals_;
  VerbsLink from_, to_;
  ArrivedMessages sink_;
};

TEST_F(ArrivalsTest, MessagesOfOnePeerAreHandedUpTogether) {
  for (uint64_t number = 0; number < 5; ++number) send(number);
  take_all();
  EXPECT_TRUE(sink_.numbers.empty());
  arrivals_->deliver(sink_);
  arrivals_->deliver(sink_);
  EXPECT_EQ(sink_.numbers, (std::vector<uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(sink_.bursts, (std::vector<unsigned>{5}));
  EXPECT_EQ(arrivals_->received(), 5u);
  EXPECT_EQ(to_.channel->received.count, 5u);
}

TEST_F(ArrivalsTest, WhatOvertakesTheLastDatagramIsKept) {
  to_.channel->received.treatment = Receiving::keeps;
  for (uint64_t number = 0; number < 3; ++number) send(number);
  take_all();
  arrivals_->deliver(sink_);
  EXPECT_TRUE(sink_.numbers.empty());
  EXPECT_EQ(to_.channel->received.count, 3u);
  arrivals_->hand_up_kept(to_, sink_);
  EXPECT_EQ(sink_.numbers, (std::vector<uint64_t>{0, 1, 2}));
}

TEST_F(ArrivalsTest, KeptMessagesOfAPeerThatIsGoneGiveTheirBuffersBack) {
  for (int round = 0; round < 20; ++round) {
    to_.channel->received.treatment = Receiving::keeps;
    for (uint64_t number = 0; number < 10; ++number) send(number);
    take_all();
    ASSERT_EQ(to_.channel->received.count, 10u * (static_cast<unsigned>(round) + 1));
    arrivals_->discard_kept(*to_.channel);
    while (!from_.channel->queue.is_empty())
      sender_->retire(from_, from_.channel->queue.retire().index, true);
  }
  arrivals_->hand_up_kept(to_, sink_);
  EXPECT_TRUE(sink_.numbers.empty());
}

TEST_F(ArrivalsTest, WhatComesAfterTheEndIsDropped) {
  to_.channel->received.treatment = Receiving::drops;
  send(1);
  take_all();
  arrivals_->deliver(sink_);
  EXPECT_TRUE(sink_.numbers.empty());
  EXPECT_EQ(to_.channel->received.count, 0u);
}

TEST_F(ArrivalsTest, WhatCannotBeAMessageIsRefused) {
  send(1, MessageKind::put, eager_bytes + 1);
  send(2, static_cast<MessageKind>(0));
  send(3, MessageKind::connection);  // only its immediate data have a meaning
  take_all();
  arrivals_->deliver(sink_);
  EXPECT_TRUE(sink_.numbers.empty());
  EXPECT_EQ(arrivals_->refused(), 2u);
}

// The buffer may hold a header of the past.
TEST_F(ArrivalsTest, WhatIsShorterThanAHeaderIsRefused) {
  send(1);
  send(2, MessageKind::connection);
  take_all(sizeof(MessageHeader) - 1);
  arrivals_->deliver(sink_);
  EXPECT_TRUE(sink_.numbers.empty());
  EXPECT_EQ(arrivals_->refused(), 2u);
}

TEST_F(ArrivalsTest, WhatIsShorterThanItsHeaderSaysIsRefused) {
  send(1, MessageKind::put, 8);
  take_all(sizeof(MessageHeader) + 7);
  arrivals_->deliver(sink_);
  EXPECT_TRUE(sink_.numbers.empty());
  EXPECT_EQ(arrivals_->refused(), 1u);
}

// There are 32 of them.
TEST_F(ArrivalsTest, DeliveredMessagesGiveTheirBuffersBack) {
  for (uint64_t number = 0; number < 100; ++number) {
    send(number);
    take_all();
    arrivals_->deliver(sink_);
    ASSERT_EQ(sink_.numbers.size(), number + 1);
    while (!from_.channel->queue.is_empty())
      sender_->retire(from_, from_.channel->queue.retire().index, true);
  }
}

TEST_F(ArrivalsTest, AMessageThatNamesAnotherQueuePairStopsIt) {
  from_.channel->peer_index = 77;
  send(1);
  take_all();
  arrivals_->deliver(sink_);
  EXPECT_TRUE(sink_.numbers.empty());
  EXPECT_TRUE(to_.channel->stop.begun);
}

}  // namespace
}  // namespace lintel

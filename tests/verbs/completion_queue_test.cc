// The completion queue that all queue pairs share.
#include <poll.h>

#include "channel_test_support.h"
#include "verbs/channels.h"

namespace lintel {
namespace {

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

}  // namespace
}  // namespace lintel

// Memory that a peer may access.
#include "verbs/exposures.h"

#include "channel_test_support.h"
#include "verbs/channel.h"

namespace lintel {
namespace {

class ExposuresTest : public test::ChannelTest {
 protected:
  void SetUp() override {
    ChannelTest::SetUp();
    ASSERT_TRUE(exposures_.emplace(*device_, *memory_, requests_).open());
  }
  void TearDown() override {
    exposures_->abandon(channels_[0]);
    for (Channel& channel : channels_) channel.queue_pair.reset();
    exposures_.reset();
    ChannelTest::TearDown();
  }
  // Exposes all bytes as two pieces.
  Exposure expose(bool write) {
    const Piece pieces[] = {{bytes_.data(), 100}, {bytes_.data() + 100, bytes_.size() - 100}};
    const Exposure exposure = exposures_->expose(links_[0], pieces, 2, write, told_);
    channels_[0].queue.flush();
    return exposure;
  }
  // The peer invalidates the window with a message.
  void invalidate(const RemoteMemory& told) {
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND_WITH_INV;
    request.send_flags = IBV_SEND_INLINE;
    request.invalidate_rkey = static_cast<uint32_t>(told.key);
    ASSERT_TRUE(channels_[1].queue.post(request, {RequestKind::message, 0}, false));
    exposures_->note_invalidated(links_[0], exposure_of_key(told.key),
                                 static_cast<uint32_t>(told.key));
  }
  // Whether posted invalidations have been executed.
  bool finish() {
    ibv_wc completion;
    while (ibv_poll_cq(completions_, 1, &completion) == 1) {
    }
    bool any = false;
    while (!channels_[0].queue.is_empty()) {
      const PostedRequest request = channels_[0].queue.retire();
      if (request.kind != RequestKind::withdraw) continue;
      any = true;
      exposures_->retire(request.index);
    }
    exposures_->release_ended();
    return any;
  }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(10'000);
  RemoteMemory told_[2];
  std::optional<Exposures> exposures_;
};

TEST_F(ExposuresTest, EachPieceGetsAWindowWithAKeyOfThisQueuePair) {
  const Exposure exposure = expose(true);
  ASSERT_EQ(exposure.status, SendStatus::sent);
  ASSERT_EQ(exposure.count, 2u);
  EXPECT_EQ(fake_verbs::done(IBV_WR_BIND_MW), 2u);
  for (const RemoteMemory& window : told_) {
    EXPECT_TRUE(is_key_of_channel(window.key, channels_[0].number));
    EXPECT_EQ(exposure_of_key(window.key), exposure.number - 1);
  }
  EXPECT_NE(told_[0].key, told_[1].key);
  EXPECT_EQ(told_[1].address, reinterpret_cast<uint64_t>(bytes_.data() + 100));
  EXPECT_EQ(told_[1].length, bytes_.size() - 100);
  EXPECT_TRUE(channels_[0].has_memory_in_use());
}

TEST_F(ExposuresTest, WindowsThatThePeerInvalidatedAreNotInvalidatedAgain) {
  const Exposure exposure = expose(false);
  for (const RemoteMemory& window : told_) invalidate(window);
  exposures_->withdraw(links_[0], exposure.number, false);
  EXPECT_EQ(fake_verbs::done(IBV_WR_LOCAL_INV), 0u);
  EXPECT_FALSE(channels_[0].has_memory_in_use());
}

TEST_F(ExposuresTest, WithoutAWindowTheKeySaysThatItIsARegistration) {
  EXPECT_TRUE(is_key_of_window((expose(true), told_[0].key)));
  fake_verbs::fail_call("ibv_alloc_mw", ENOMEM, 1, 2);
  const Exposure exposure = expose(true);
  ASSERT_EQ(exposure.count, 2u);
  for (const RemoteMemory& told : told_) EXPECT_FALSE(is_key_of_window(told.key));
  exposures_->withdraw(links_[0], exposure.number, true);
  EXPECT_EQ(fake_verbs::done(IBV_WR_LOCAL_INV), 0u);
}

TEST_F(ExposuresTest, OthersAreInvalidatedByTheirOwner) {
  const Exposure exposure = expose(true);
  invalidate(told_[0]);
  exposures_->withdraw(links_[0], exposure.number, false);
  EXPECT_EQ(fake_verbs::done(IBV_WR_LOCAL_INV), 1u);
  EXPECT_TRUE(channels_[0].has_memory_in_use());
  EXPECT_TRUE(finish());
  EXPECT_FALSE(channels_[0].has_memory_in_use());
}

TEST_F(ExposuresTest, AnInvalidationWaitsForRoom) {
  const Exposure exposure = expose(true);
  const auto fill = [&] {
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_INLINE;
    return channels_[0].queue.post(request, {RequestKind::message, 0}, false);
  };
  fake_verbs::hold();
  while (channels_[0].queue.room() != 0) ASSERT_TRUE(fill());
  exposures_->withdraw(links_[0], exposure.number, false);
  EXPECT_EQ(channels_[0].exposures_to_withdraw, 1u);
  fake_verbs::release();
  EXPECT_FALSE(finish());
  exposures_->post_waiting(links_[0]);
  EXPECT_TRUE(finish());
  EXPECT_EQ(fake_verbs::done(IBV_WR_LOCAL_INV), 2u);
}

TEST_F(ExposuresTest, MemoryThatThePeerMayStillAccessEndsWithTheQueuePair) {
  const Exposure exposure = expose(true);
  exposures_->withdraw(links_[0], exposure.number, true);
  EXPECT_NE(links_[0].stop_because, nullptr);
  EXPECT_EQ(fake_verbs::state_of(channels_[0].number), IBV_QPS_ERR);
  EXPECT_EQ(fake_verbs::done(IBV_WR_LOCAL_INV), 0u);
  exposures_->abandon(channels_[0]);
  exposures_->release_ended();
  EXPECT_FALSE(channels_[0].has_memory_in_use());
  EXPECT_EQ(fake_verbs::in_use().windows, 0u);
}

TEST_F(ExposuresTest, AnOperationMayOutliveTheQueuePair) {
  const Exposure exposure = expose(true);
  exposures_->abandon(channels_[0]);
  channels_[0].queue_pair.reset();
  links_[0].channel = nullptr;
  links_[0].path = Path::datagrams;
  exposures_->release_ended();
  exposures_->withdraw(links_[0], exposure.number, false);
}

TEST_F(ExposuresTest, WithoutAQueuePairOneIsRequestedAndTheCallerTriesAgain) {
  links_[0].path = Path::datagrams;
  links_[0].channel = nullptr;
  EXPECT_EQ(expose(true).status, SendStatus::connecting);
  EXPECT_TRUE(links_[0].wants_channel);
  links_[0].wants_channel = false;
  links_[0].messages_until_request = ChannelRequests::never;
  const Exposure exposure = expose(true);
  EXPECT_EQ(exposure.status, SendStatus::sent);
  EXPECT_EQ(exposure.count, 0u);
}

TEST_F(ExposuresTest, MemoryThatCannotBeRegisteredIsNotExposed) {
  fake_verbs::limit_locked_bytes(fake_verbs::locked_bytes());
  const Exposure exposure = expose(false);
  EXPECT_EQ(exposure.status, SendStatus::sent);
  EXPECT_EQ(exposure.count, 0u);
}

}  // namespace
}  // namespace lintel

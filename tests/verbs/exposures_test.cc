// Memory that a peer may access.
#include "verbs/exposures.h"

#include "channel_test_support.h"
#include "verbs/channel.h"
#include "verbs/remote_accesses.h"

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

// Reads and writes of the memory of a peer.

class EndedAccesses final : public test::QuietSink {
 public:
  void on_remote_done(Link&, uint32_t token, RemoteResult result) noexcept override {
    tokens.push_back(token);
    results.push_back(result);
  }

  std::vector<uint32_t> tokens;
  std::vector<RemoteResult> results;
};

class RemoteAccessesTest : public test::ChannelTest {
 protected:
  void SetUp() override {
    ChannelTest::SetUp();
    ASSERT_TRUE(accesses_.emplace(*device_, *memory_).open());
    region_ = ibv_reg_mr(device_->pd, theirs_.data(), theirs_.size(),
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    ASSERT_NE(region_, nullptr);
  }
  void TearDown() override {
    accesses_.reset();
    for (Channel& channel : channels_) channel.queue_pair.reset();
    if (region_ != nullptr) ibv_dereg_mr(region_);
    ChannelTest::TearDown();
  }
  [[nodiscard]] RemoteMemory told(uint64_t offset, uint64_t length) const {
    return {reinterpret_cast<uint64_t>(theirs_.data()) + offset, length,
            exposure_key(1, channels_[1].number, region_->rkey)};
  }
  // Retires completed requests and reports ended accesses, until there are no more completions.
  void run() {
    ibv_wc completion;
    while (ibv_poll_cq(completions_, 1, &completion) == 1) {
      const auto position = static_cast<uint32_t>(completion.wr_id);
      SendQueue& queue = channels_[0].queue;
      while (queue.contains(position))
        accesses_->retire(channels_[0], queue.retire().index, completion.status == IBV_WC_SUCCESS);
      if (completion.status == IBV_WC_SUCCESS) accesses_->post_waiting(links_[0]);
    }
    accesses_->report(sink_);
  }

  std::vector<std::byte> ours_ = test::bytes_of(1, 100'000);
  std::vector<std::byte> theirs_ = test::bytes_of(2, 100'000);
  const Piece local_{ours_.data(), ours_.size()};
  ibv_mr* region_ = nullptr;
  std::optional<RemoteAccesses> accesses_;
  EndedAccesses sink_;
};

TEST_F(RemoteAccessesTest, BytesGoBetweenPiecesAndRangesOfOtherLengths) {
  const Piece local[] = {{ours_.data(), 70'000}, {ours_.data() + 70'000, 30'000}};
  const RemoteMemory remote[] = {told(0, 99'999), told(99'999, 1)};
  ASSERT_EQ(accesses_->start(links_[0], local, 2, remote, 2, true, 7).status,
            RemoteStatus::started);
  run();
  EXPECT_EQ(theirs_, test::bytes_of(1, 100'000));
  const std::vector<std::byte> other = test::bytes_of(3, 100'000);
  std::copy(other.begin(), other.end(), theirs_.begin());
  ASSERT_EQ(accesses_->start(links_[0], local, 2, remote, 2, false, 8).status,
            RemoteStatus::started);
  run();
  EXPECT_EQ(ours_, other);
  EXPECT_EQ(sink_.tokens, (std::vector<uint32_t>{7, 8}));
  for (const RemoteResult& result : sink_.results) {
    EXPECT_EQ(result.status, RemoteStatus::done);
    EXPECT_EQ(result.bytes, 100'000u);
  }
  EXPECT_EQ(accesses_->started(), 2u);
  EXPECT_EQ(accesses_->bytes(), 200'000u);
  EXPECT_FALSE(channels_[0].has_memory_in_use());
}

TEST_F(RemoteAccessesTest, MoreThanTheSendQueueTakesWaits) {
  const unsigned count = SendQueue::capacity * 2;
  const RemoteMemory remote = told(0, local_.length);
  for (unsigned i = 0; i < count; ++i)
    ASSERT_EQ(accesses_->start(links_[0], &local_, 1, &remote, 1, false, i).status,
              RemoteStatus::started);
  EXPECT_NE(channels_[0].accesses.waiting, nullptr);
  EXPECT_GT(channels_[0].queue.room(), 0u);
  run();
  EXPECT_EQ(sink_.tokens.size(), count);
}

TEST_F(RemoteAccessesTest, MemoryToldForAnotherQueuePairIsNotAccessed) {
  RemoteMemory remote = told(0, local_.length);
  remote.key = exposure_key(1, channels_[1].number + 1, region_->rkey);
  EXPECT_EQ(accesses_->start(links_[0], &local_, 1, &remote, 1, false, 1).status,
            RemoteStatus::unsupported);
  remote = told(0, local_.length);
  channels_[0].stop.begun = true;
  EXPECT_EQ(accesses_->start(links_[0], &local_, 1, &remote, 1, false, 1).status,
            RemoteStatus::unsupported);
}

TEST_F(RemoteAccessesTest, AFailureIsReportedAsUnsupportedOrAsThatOfThePeer) {
  for (const bool peer_failed : {false, true}) {
    sink_ = {};
    const RemoteMemory remote = told(0, local_.length);
    ASSERT_EQ(accesses_->start(links_[0], &local_, 1, &remote, 1, false, 1).status,
              RemoteStatus::started);
    accesses_->retire(channels_[0], channels_[0].queue.retire().index, false);
    if (peer_failed) accesses_->set_failure(links_[0], RemoteStatus::peer_failed);
    accesses_->report(sink_);
    ASSERT_EQ(sink_.results.size(), 1u);
    EXPECT_EQ(sink_.results[0].status,
              peer_failed ? RemoteStatus::peer_failed : RemoteStatus::unsupported);
    EXPECT_EQ(sink_.results[0].bytes, 0u);
  }
}

TEST_F(RemoteAccessesTest, WhatWaitsEndsWithTheQueuePair) {
  const RemoteMemory remote = told(0, local_.length);
  for (unsigned i = 0; channels_[0].accesses.waiting == nullptr; ++i)
    ASSERT_EQ(accesses_->start(links_[0], &local_, 1, &remote, 1, true, i).status,
              RemoteStatus::started);
  while (!channels_[0].queue.is_empty())
    accesses_->retire(channels_[0], channels_[0].queue.retire().index, true);
  sink_ = {};
  accesses_->abandon(channels_[0]);
  accesses_->report(sink_);
  EXPECT_FALSE(channels_[0].has_memory_in_use());
  ASSERT_FALSE(sink_.results.empty());
  EXPECT_EQ(sink_.results.back().status, RemoteStatus::unsupported);
}

}  // namespace
}  // namespace lintel

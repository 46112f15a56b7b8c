// Reads and writes of the memory of a peer.
#include "verbs/remote_accesses.h"

#include "channel_test_support.h"
#include "verbs/channel.h"

namespace lintel {
namespace {

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

// Two links whose queue pairs are connected to each other, without a transport: for tests of its
// parts.
#pragma once

#include "verbs/channel.h"
#include "verbs/channels.h"
#include "verbs/device_memory.h"
#include "verbs/receive_buffers.h"
#include "verbs_test_support.h"

namespace lintel::test {

class ChannelTest : public VerbsDeviceTest {
 protected:
  static constexpr uint32_t pieces = 4;
  static constexpr uint32_t large_bytes = 4096;

  void SetUp() override {
    VerbsDeviceTest::SetUp();
    memory_.emplace(*device_);
    memory_->open(&cache_);
    std::string reason;
    ASSERT_TRUE(receives_.emplace().open(*device_, 256, large_bytes, 0, reason)) << reason;
    ASSERT_TRUE(shared_.emplace(*device_).open(256, SendQueue::capacity, reason)) << reason;
    completions_ = shared_->get();
    QueuePairAddress addresses[2];
    for (uint32_t i = 0; i < 2; ++i) {
      Channel& channel = channels_[i];
      VerbsLink& link = links_[i];
      channel.queue_pair = QueuePair::create(*device_, completions_, receives_->queue(),
                                             {SendQueue::capacity, 128, pieces}, reason);
      ASSERT_NE(channel.queue_pair, nullptr) << reason;
      channel.index = i;
      channel.peer_index = 1 - i;
      channel.number = channel.queue_pair->number();
      channel.queue.open(link, requests_, channel.queue_pair->get(), i);
      channel.connected = true;
      link.channel = &channel;
      link.path = Path::queue_pair;
      addresses[i] = channel.queue_pair->address();
    }
    for (uint32_t i = 0; i < 2; ++i) {
      channels_[i].peer = addresses[1 - i];
      ASSERT_TRUE(channels_[i].queue_pair->connect(addresses[1 - i], reason)) << reason;
    }
  }
  void TearDown() override {
    for (Channel& channel : channels_) channel.queue_pair.reset();
    shared_.reset();
    receives_.reset();
    memory_.reset();
    VerbsDeviceTest::TearDown();
  }

  // Finds the next completion of this kind and skips others. Returns false if there is none.
  [[nodiscard]] bool next_completion(ibv_wc_opcode opcode, ibv_wc& completion) const {
    while (ibv_poll_cq(completions_, 1, &completion) == 1)
      if (completion.status != IBV_WC_SUCCESS || completion.opcode == opcode) return true;
    return false;
  }

  WatchedCache cache_{WatchedCache::Settings{}};
  ChannelRequests requests_{true};
  std::optional<DeviceMemory> memory_;
  std::optional<ReceiveBuffers> receives_;
  std::optional<CompletionQueue> shared_;
  ibv_cq* completions_ = nullptr;  // the queue of shared_
  VerbsLink links_[2];
  Channel channels_[2];
};

}  // namespace lintel::test

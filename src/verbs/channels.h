// The queue pairs of this process: made and removed, found by their numbers, stopped. The poller.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "util/counter.h"
#include "verbs/channel.h"
#include "verbs/completion_queue.h"
#include "verbs/receive_buffers.h"
#include "verbs/verbs_link.h"

namespace lintel {

class Channels {
 public:
  struct Place {
    std::unique_ptr<Channel> channel;  // nullptr: the place is free
    VerbsLink* link = nullptr;
  };

  Channels(VerbsDevice& device, CompletionQueue& completions, const ReceiveBuffers& receives,
           ChannelRequests& requests, UnfinishedLinks& unfinished, uint32_t most) noexcept
      : device_(device),
        completions_(completions),
        receives_(receives),
        requests_(requests),
        unfinished_(unfinished),
        most_(most) {}

  [[nodiscard]] uint32_t count() const noexcept { return count_; }
  [[nodiscard]] bool is_full() const noexcept { return count_ >= most_; }
  // Makes no more queue pairs from now on: the device has lost a queue that all share.
  void close() noexcept { closed_ = true; }
  [[nodiscard]] bool is_closed() const noexcept { return closed_; }

  // Returns nullptr if the device has no room, or there is no memory.
  Channel* make(VerbsLink& link, const QueuePairSizes& sizes) noexcept;
  // Removes the channel. The link continues with datagrams. The queue pair has been destroyed.
  void remove(VerbsLink& link) noexcept;
  // Stops the queue pair: nothing more is sent over it. The link is unfinished until messages
  // travel as datagrams.
  void stop(VerbsLink& link, const char* why) noexcept;

  [[nodiscard]] Place* find(uint64_t index, uint32_t number) noexcept {
    return index < places_.size() && places_[index].channel != nullptr &&
                   places_[index].channel->number == number
               ? &places_[index]
               : nullptr;
  }
  [[nodiscard]] Place* find(uint32_t number) noexcept;
  template <typename Visit>
  void for_each(const Visit& visit) noexcept {
    for (Place& place : places_)
      if (place.channel != nullptr) visit(*place.link, *place.channel);
  }

  [[nodiscard]] uint64_t stopped() const noexcept { return stopped_.get(); }

 private:
  VerbsDevice& device_;
  CompletionQueue& completions_;
  const ReceiveBuffers& receives_;
  ChannelRequests& requests_;
  UnfinishedLinks& unfinished_;
  const uint32_t most_;
  std::vector<Place> places_;
  uint32_t count_ = 0;
  bool closed_ = false;
  SharedCounter stopped_;
};

// Stops queue pairs that are not used: after a time, or when another peer needs one. The poller.
class IdleChannels {
 public:
  // After `idle_ns` without use; 0: never.
  IdleChannels(Channels& channels, uint64_t idle_ns) noexcept
      : channels_(channels), idle_ns_(idle_ns) {}

  // Called regularly, also without messages.
  void look() noexcept;
  // Stops a queue pair so that another peer can have one, when there are as many as allowed. False:
  // all are in use.
  [[nodiscard]] bool stop_longest_idle() noexcept;

 private:
  Channels& channels_;
  const uint64_t idle_ns_;
  uint64_t next_look_ns_ = 0;
};

}  // namespace lintel

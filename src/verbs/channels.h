// The queue pairs of this process: made and removed, found by their numbers, stopped. The poller.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "util/counter.h"
#include "verbs/channel.h"
#include "verbs/device.h"
#include "verbs/receive_buffers.h"
#include "verbs/verbs_link.h"

namespace lintel {

// The completion queue of all RC queue pairs. Message path, the poller; path into sleep for arm().
class CompletionQueue {
 public:
  static constexpr unsigned burst = 32;

  explicit CompletionQueue(VerbsDevice& device) noexcept : device_(device) {}
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  // All its queue pairs are destroyed by now.
  ~CompletionQueue();

  // Set-up path. Makes the queue with room for `receives`, and for `sends` of each queue pair.
  // False: `reason` says why not.
  [[nodiscard]] bool open(uint32_t receives, uint32_t sends, std::string& reason);
  [[nodiscard]] ibv_cq* get() const noexcept { return queue_; }
  // Connection path. Makes room for all work requests of this many queue pairs. False: there is no
  // room.
  [[nodiscard]] bool reserve(uint32_t queue_pairs) noexcept;
  // Maximum number of completions at a time.
  [[nodiscard]] uint64_t entries() const noexcept {
    return receives_ + uint64_t{queue_pairs_} * sends_;
  }

  // Takes at most `burst` completions; returns their number.
  [[nodiscard]] unsigned take(ibv_wc* completions) noexcept;
  // Called after the events of the device have been drained. True: the next completion makes its
  // descriptor readable.
  [[nodiscard]] bool arm() noexcept;

 private:
  VerbsDevice& device_;
  ibv_cq* queue_ = nullptr;
  uint32_t receives_ = 0;
  uint32_t sends_ = 0;
  uint32_t queue_pairs_ = 64;  // number of queue pairs that it has room for
  ibv_wc early_[burst];        // found by arm()
  unsigned early_count_ = 0;
};

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
  // Ends a queue pair: nothing more is sent or received by it, and no memory accessed.
  void release(std::unique_ptr<QueuePair> queue_pair) noexcept;
  // Called regularly. Destroys those for which release() would have waited.
  void destroy_released() noexcept;
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
  struct Released {
    std::unique_ptr<QueuePair> queue_pair;
    uint64_t since_ns;
  };

  std::vector<Place> places_;
  std::vector<Released> released_;
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

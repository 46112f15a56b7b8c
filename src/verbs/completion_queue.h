// The completion queue of all RC queue pairs. Message path, the poller; path into sleep for arm().
#pragma once

#include <cstdint>
#include <string>

#include <infiniband/verbs.h>

#include "verbs/device.h"

namespace lintel {

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

}  // namespace lintel

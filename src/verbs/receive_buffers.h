// Buffers for messages that arrive over any of the queue pairs: a shared receive queue. Message
// path, the poller; set-up path for open().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "verbs/device.h"
#include "verbs/device_memory.h"

namespace lintel {

class ReceiveBuffers {
 public:
  ReceiveBuffers() = default;
  ReceiveBuffers(const ReceiveBuffers&) = delete;
  ReceiveBuffers& operator=(const ReceiveBuffers&) = delete;
  ~ReceiveBuffers();

  // `count` buffers of `bytes` each, posted. `tag` is part of every wr_id.
  [[nodiscard]] bool open(VerbsDevice& device, uint32_t count, uint32_t bytes, uint64_t tag,
                          std::string& reason);
  [[nodiscard]] ibv_srq* queue() const noexcept { return queue_; }
  [[nodiscard]] uint32_t count() const noexcept { return count_; }
  [[nodiscard]] const std::byte* data(uint32_t index) const noexcept {
    return memory_.data() + size_t{index} * bytes_;
  }
  // Returns a buffer, which may be used again. Buffers are posted several at a time.
  void give_back(uint32_t index) noexcept {
    returned_.push_back(index);
    if (returned_.size() >= batch_) post_returned();
  }

 private:
  static constexpr unsigned largest_batch = 16;

  void post_returned() noexcept;

  ibv_srq* queue_ = nullptr;
  RegisteredBuffer memory_;
  uint32_t count_ = 0;
  uint32_t bytes_ = 0;
  uint64_t tag_ = 0;
  size_t batch_ = largest_batch;
  std::vector<uint32_t> returned_;  // has room for all buffers
};

}  // namespace lintel

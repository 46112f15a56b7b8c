// Buffers that messages wait in until the device has sent them and the other end has them: a queue pair
// may fail, and then they are sent another way. Message path; set-up path for open().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <infiniband/verbs.h>

#include "util/arena.h"
#include "verbs/registered_buffer.h"

namespace lintel {

class SendSlots {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  SendSlots() = default;
  SendSlots(const SendSlots&) = delete;
  SendSlots& operator=(const SendSlots&) = delete;

  // `count` slots of `bytes` each, registered with `pd`. False: `reason` says why not.
  [[nodiscard]] bool open(ibv_pd* pd, uint32_t count, uint32_t bytes, std::string& reason);

  [[nodiscard]] uint32_t slot_bytes() const noexcept { return bytes_; }
  [[nodiscard]] uint32_t lkey() const noexcept { return memory_.local_key(); }
  // Any thread; none: all are in use.
  [[nodiscard]] uint32_t acquire() noexcept {
    const uint32_t index = states_.allocate();
    return index == Arena<State>::no_index ? none : index;
  }
  void release(uint32_t index) noexcept { states_.release(index); }
  [[nodiscard]] std::byte* data(uint32_t index) const noexcept {
    return memory_.data() + size_t{index} * bytes_;
  }
  // Of whoever holds the slot.
  [[nodiscard]] uint32_t& length(uint32_t index) noexcept { return states_.at(index).length; }

 private:
  struct State {
    std::atomic<uint32_t> next_free{0};
    uint32_t length = 0;
  };

  Arena<State> states_;
  RegisteredBuffer memory_;
  uint32_t bytes_ = 0;
};

}  // namespace lintel

// Eager messages of several frames: at most one for each connection, in buffers that all
// connections share. Message path; the poller only.
//
// A peer that ends in the middle of a message leaves a buffer in use until its connection fails.
// oldest() names the message that has waited longest for its next frame: when no buffer is left,
// its connection can be failed first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reliable/frame_pool.h"

namespace lintel {

struct Connection;

// The message of a connection that is being reassembled.
struct HalfMessage {
  Connection* owner = nullptr;
  FrameBuffer* buffer = nullptr;  // nullptr: no message is half received
  uint32_t filled = 0;            // bytes of it that have arrived
  uint64_t progress_ns = 0;       // time of the last arrival
  HalfMessage* older = nullptr;   // links of a list in the order of progress_ns
  HalfMessage* newer = nullptr;
};

class Reassembly {
 public:
  // Set-up path. Messages of up to `longest` bytes, `memory_bytes` of them at a time. False: the
  // system refuses the address space.
  [[nodiscard]] bool open(uint32_t longest, uint64_t memory_bytes) noexcept;

  // A message of `length` bytes begins. False: no buffer is left.
  [[nodiscard]] bool begin(HalfMessage& half, uint32_t length, uint64_t now_ns) noexcept;
  // False: the message is longer than was said when it began.
  [[nodiscard]] bool append(HalfMessage& half, const std::byte* bytes, uint32_t length,
                            uint64_t now_ns) noexcept;
  // The message, which goes to pool() after use; nullptr: part of it is missing.
  [[nodiscard]] FrameBuffer* finish(HalfMessage& half) noexcept;
  void drop(HalfMessage& half) noexcept;

  [[nodiscard]] HalfMessage* oldest() const noexcept { return oldest_; }
  [[nodiscard]] FramePool& pool() noexcept { return pool_; }
  [[nodiscard]] uint64_t used_bytes() const noexcept { return pool_.used_bytes(); }

 private:
  void link(HalfMessage& half, uint64_t now_ns) noexcept;
  void unlink(HalfMessage& half) noexcept;

  FramePool pool_;
  uint32_t longest_ = 0;
  HalfMessage* oldest_ = nullptr;
  HalfMessage* newest_ = nullptr;
};

}  // namespace lintel

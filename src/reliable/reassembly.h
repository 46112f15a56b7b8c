// Eager messages of several frames: at most one for each connection, in buffers that all
// connections share. Message path; the poller only.
//
// A peer that ends in the middle of a message leaves a buffer in use until its connection fails.
// oldest() names the message that has waited longest for its next frame: when no buffer is left,
// its connection can be failed first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "reliable/frame.h"
#include "reliable/frame_pool.h"
#include "util/assert.h"

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

// Puts data frames together that came in parts, because they were cut before the path was found to
// take only shorter ones (PathMtu). A sender has one such frame on the way at a time and repeats
// all of its parts until the frame is acknowledged. So one frame is kept for each connection, and
// parts that do not continue it are ignored. Rare.
class FrameParts {
 public:
  enum class Taken : uint8_t {
    more,  // some parts are missing
    whole,
    no_room,
    malformed,
  };
  // The body of a frame of type `part`. `pool`: of the buffer. `longest_frame`: that a peer may
  // send. `room_bytes`: for a new frame.
  [[nodiscard]] Taken take(FramePool& pool, uint32_t longest_frame, const FrameHeader& header,
                           const std::byte* body, uint32_t length, uint64_t room_bytes) noexcept;
  // After that, if it is whole: a data frame like one that came out of order, and the caller's.
  [[nodiscard]] FrameBuffer* take_whole() noexcept {
    LINTEL_ASSERT(kept_ != nullptr && kept_->held_bytes == kept_->length);
    return std::exchange(kept_, nullptr);
  }
  [[nodiscard]] bool is_empty() const noexcept { return kept_ == nullptr; }
  // Drops the parts of a frame whose number is lower: that frame has come whole.
  void drop_before(FramePool& pool, uint32_t sequence) noexcept {
    if (kept_ != nullptr && sequence_distance(kept_->sequence, sequence) < 0) drop(pool);
  }
  void drop(FramePool& pool) noexcept {
    if (kept_ != nullptr) pool.release(std::exchange(kept_, nullptr));
  }

 private:
  FrameBuffer* kept_ = nullptr;  // its `held_bytes` have arrived, with the header
};

}  // namespace lintel

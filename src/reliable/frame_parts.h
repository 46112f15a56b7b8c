// Puts data frames together that came in parts, because they were cut before the path was found to
// take only shorter ones (PathMtu). A sender has one such frame on the way at a time and repeats
// all of its parts until the frame is acknowledged. So one frame is kept for each connection, and
// parts that do not continue it are ignored. Rare, on the message path; the poller.
#pragma once

#include "reliable/frame.h"
#include "reliable/frame_pool.h"

namespace lintel {

class FrameParts {
 public:
  // `pool`: of the buffers. `longest_frame`: that a peer may send.
  FrameParts(FramePool& pool, uint32_t longest_frame) noexcept
      : pool_(pool), longest_frame_(longest_frame) {}

  enum class Taken : uint8_t {
    more,  // some parts are missing
    whole,
    no_room,
    malformed,
  };
  // The body of a frame of type `part`. `kept`: what has come of such a frame, or nullptr. Once it
  // is whole, it is a data frame like one that came early, and the caller's. `room_bytes`: for a
  // new one.
  [[nodiscard]] Taken take(FrameBuffer*& kept, const FrameHeader& header, const std::byte* body,
                           uint32_t length, uint64_t room_bytes) noexcept;
  void drop(FrameBuffer*& kept) noexcept {
    if (kept != nullptr) pool_.release(kept);
    kept = nullptr;
  }

 private:
  FramePool& pool_;
  const uint32_t longest_frame_;
};

}  // namespace lintel

// The byte ring of a lane as its producer sees it: which bytes are free. Payloads are contiguous
// and share no cache line. Message path, except attach().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lane/lane_layout.h"
#include "util/assert.h"

namespace lintel {

class ByteRing {
 public:
  // `usable_bytes`: so much of the ring may be used until extend(). False: no memory.
  [[nodiscard]] bool attach(std::byte* data, const LaneGeometry& geometry,
                            uint32_t usable_bytes) noexcept;
  void detach() noexcept { ends_.reset(); }

  // Whether a payload of that length would be the first that needs more of the ring than may be
  // used.
  [[nodiscard]] bool must_grow_for(uint32_t length) const noexcept {
    return all_bytes_ != bytes_ && tail_ + rounded(length) > bytes_;
  }
  // Sets that all of the ring may be used, or never more than so far. Before the ring has wrapped,
  // every byte in it keeps its place.
  void extend(bool to_all) noexcept {
    if (to_all) bytes_ = all_bytes_;
    all_bytes_ = bytes_;
  }

  // Place of the next payload. A payload that does not fit before the end of the ring starts at its
  // beginning.
  struct Room {
    uint32_t offset;  // offset in the ring
    uint32_t bytes;
    uint64_t end;  // value of tail_ after the payload
  };
  [[nodiscard]] Room room_for(uint32_t length) const noexcept {
    const uint32_t bytes = rounded(length);
    const auto offset = static_cast<uint32_t>(tail_ % bytes_);
    if (offset + bytes <= bytes_) return {offset, bytes, tail_ + bytes};
    return {0, bytes, tail_ + bytes_ - offset + bytes};
  }
  [[nodiscard]] bool is_free(const Room& room) const noexcept {
    return room.end - released_ <= bytes_;
  }
  [[nodiscard]] std::byte* at(const Room& room) const noexcept { return data_ + room.offset; }
  void take(const Room& room) noexcept {
    LINTEL_ASSERT(is_free(room) && room.end > tail_ && room.offset + room.bytes <= bytes_);
    tail_ = room.end;
  }
  // The next payload is probably as long. The consumer read its cache lines a lap ago: stores would
  // get them back one after the other, and the next locked instruction would wait for all of them.
  void prefetch_behind(const Room& room) const noexcept;

  // A message was published in that cell, with the bytes taken so far.
  void note_published(uint32_t cell) noexcept { ends_[cell] = tail_; }
  // The consumer has released that cell and all before it.
  void note_released(uint32_t cell) noexcept {
    LINTEL_ASSERT(ends_[cell] >= released_ && ends_[cell] <= tail_);
    released_ = ends_[cell];
  }

 private:
  [[nodiscard]] static constexpr uint32_t rounded(uint32_t length) noexcept {
    return (length + 63) & ~63u;
  }

  std::byte* data_ = nullptr;
  uint32_t bytes_ = 0;      // bytes that may be used
  uint32_t all_bytes_ = 0;  // length of the ring; more than bytes_: it has not wrapped yet
  uint64_t tail_ = 0;       // bytes ever taken
  uint64_t released_ = 0;   // bytes ever released
  std::unique_ptr<uint64_t[]> ends_;  // tail_ after the message of each cell
};

}  // namespace lintel

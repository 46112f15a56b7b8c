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
  // `message`: number of the message that has the payload.
  void take(const Room& room, uint32_t message) noexcept {
    LINTEL_ASSERT(is_free(room) && room.end > tail_ && room.offset + room.bytes <= bytes_);
    LINTEL_ASSERT(next_end_ - first_end_ < most_ends_);
    tail_ = room.end;
    ends_[next_end_++ % most_ends_] = {tail_, message};
  }
  // The next payload is probably as long. The consumer read its cache lines a lap ago: stores would
  // get them back one after the other, and the next locked instruction would wait for all of them.
  void prefetch_behind(const Room& room) const noexcept;

  // The consumer has released all messages before that one.
  void note_released(uint32_t message) noexcept {
    for (; first_end_ != next_end_; ++first_end_) {
      const End& end = ends_[first_end_ % most_ends_];
      if (static_cast<int32_t>(end.message - message) >= 0) return;
      LINTEL_ASSERT(end.tail >= released_ && end.tail <= tail_);
      released_ = end.tail;
    }
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
  struct End {
    uint64_t tail;  // tail_ after a payload
    uint32_t message;
  };
  // Of the payloads that were not released, in order.
  std::unique_ptr<End[]> ends_;
  uint32_t most_ends_ = 0;  // one for each cell
  uint64_t first_end_ = 0;
  uint64_t next_end_ = 0;
};

}  // namespace lintel

// A list of half-received messages in the order of their last progress. Message path, but for
// open().
#include "reliable/reassembly.h"

#include <cstring>

#include "util/assert.h"

namespace lintel {

bool Reassembly::open(uint32_t longest, uint64_t memory_bytes) noexcept {
  longest_ = longest;
  // Half of a pool is for its largest buffers, and no others are used.
  return pool_.open(longest, 2 * memory_bytes);
}

void Reassembly::link(HalfMessage& half, uint64_t now_ns) noexcept {
  LINTEL_ASSERT((newest_ == nullptr) == (oldest_ == nullptr));
  half.progress_ns = now_ns;
  half.older = newest_;
  half.newer = nullptr;
  (newest_ != nullptr ? newest_->newer : oldest_) = &half;
  newest_ = &half;
}

void Reassembly::unlink(HalfMessage& half) noexcept {
  LINTEL_ASSERT((half.older != nullptr ? half.older->newer : oldest_) == &half);
  LINTEL_ASSERT((half.newer != nullptr ? half.newer->older : newest_) == &half);
  (half.older != nullptr ? half.older->newer : oldest_) = half.newer;
  (half.newer != nullptr ? half.newer->older : newest_) = half.older;
}

bool Reassembly::begin(HalfMessage& half, uint32_t length, uint64_t now_ns) noexcept {
  LINTEL_ASSERT(half.buffer == nullptr && length <= longest_);
  // All buffers are of one size, so that one that is given up serves any other message.
  half.buffer = pool_.acquire(longest_);
  if (half.buffer == nullptr) return false;
  half.buffer->length = length;
  half.filled = 0;
  link(half, now_ns);
  return true;
}

bool Reassembly::append(HalfMessage& half, const std::byte* bytes, uint32_t length,
                        uint64_t now_ns) noexcept {
  LINTEL_ASSERT(half.filled <= half.buffer->length);
  if (length > half.buffer->length - half.filled) return false;
  std::memcpy(half.buffer->data() + half.filled, bytes, length);
  half.filled += length;
  unlink(half);
  link(half, now_ns);
  return true;
}

FrameBuffer* Reassembly::finish(HalfMessage& half) noexcept {
  if (half.filled != half.buffer->length) return nullptr;
  unlink(half);
  FrameBuffer* const whole = half.buffer;
  half.buffer = nullptr;
  return whole;
}

void Reassembly::drop(HalfMessage& half) noexcept {
  if (half.buffer == nullptr) return;
  unlink(half);
  pool_.release(half.buffer);
  half.buffer = nullptr;
}

FrameParts::Taken FrameParts::take(FramePool& pool, uint32_t longest_frame,
                                   const FrameHeader& header, const std::byte* body,
                                   uint32_t length, uint64_t room_bytes) noexcept {
  PartHeader part;
  if (length <= sizeof part) return Taken::malformed;
  std::memcpy(&part, body, sizeof part);
  body += sizeof part;
  length -= sizeof part;
  if (part.length > longest_frame - sizeof header || part.offset >= part.length ||
      length > part.length - part.offset)
    return Taken::malformed;
  const auto frame_length = static_cast<uint32_t>(sizeof header + part.length);
  const auto flags = static_cast<uint8_t>(header.flags & frame_whole);
  if (kept_ != nullptr && (kept_->sequence != header.sequence || kept_->length != frame_length ||
                           kept_->flags != flags))
    drop(pool);
  if (kept_ == nullptr) {
    if (part.offset != 0) return Taken::more;
    if (frame_length <= room_bytes) kept_ = pool.acquire(frame_length);
    if (kept_ == nullptr) return Taken::no_room;
    LINTEL_ASSERT(pool.capacity_of(*kept_) >= frame_length);
    kept_->held_bytes = sizeof header;
    kept_->sequence = header.sequence;
    kept_->flags = flags;
  }
  // The boundaries are others if the path has become narrower since the last attempt.
  const auto filled = static_cast<uint32_t>(kept_->held_bytes - sizeof header);
  if (part.offset > filled || part.offset + length <= filled) return Taken::more;
  const uint32_t known = filled - part.offset;
  LINTEL_ASSERT(known < length && kept_->held_bytes + length - known <= kept_->length);
  std::memcpy(kept_->data() + kept_->held_bytes, body + known, length - known);
  kept_->held_bytes += length - known;
  return kept_->held_bytes == kept_->length ? Taken::whole : Taken::more;
}

}  // namespace lintel

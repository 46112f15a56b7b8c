// Frames in parts. Rare, on the message path.
#include "reliable/frame_parts.h"

#include <cstring>

#include "util/assert.h"

namespace lintel {

// The bytes that have arrived are `held_bytes` of a kept frame, with its header.
FrameParts::Taken FrameParts::take(FrameBuffer*& kept, const FrameHeader& header,
                                   const std::byte* body, uint32_t length,
                                   uint64_t room_bytes) noexcept {
  PartHeader part;
  if (length <= sizeof part) return Taken::malformed;
  std::memcpy(&part, body, sizeof part);
  body += sizeof part;
  length -= sizeof part;
  if (part.length > longest_frame_ - sizeof header || part.offset >= part.length ||
      length > part.length - part.offset)
    return Taken::malformed;
  const auto frame_length = static_cast<uint32_t>(sizeof header + part.length);
  const auto flags = static_cast<uint8_t>(header.flags & frame_whole);
  if (kept != nullptr &&
      (kept->sequence != header.sequence || kept->length != frame_length || kept->flags != flags))
    drop(kept);
  if (kept == nullptr) {
    if (part.offset != 0) return Taken::more;
    if (frame_length <= room_bytes) kept = pool_.acquire(frame_length);
    if (kept == nullptr) return Taken::no_room;
    LINTEL_ASSERT(pool_.capacity_of(*kept) >= frame_length);
    kept->held_bytes = sizeof header;
    kept->sequence = header.sequence;
    kept->flags = flags;
  }
  // The boundaries are others if the path has become narrower since the last attempt.
  const auto filled = static_cast<uint32_t>(kept->held_bytes - sizeof header);
  if (part.offset > filled || part.offset + length <= filled) return Taken::more;
  const uint32_t known = filled - part.offset;
  LINTEL_ASSERT(known < length && kept->held_bytes + length - known <= kept->length);
  std::memcpy(kept->data() + kept->held_bytes, body + known, length - known);
  kept->held_bytes += length - known;
  return kept->held_bytes == kept->length ? Taken::whole : Taken::more;
}

}  // namespace lintel

// The header of a message on its way into a frame. Message path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transport/message.h"

namespace lintel {

// With the length of the payload as its link word. Written as words, as the check reads it.
inline void write_header(std::byte* to, const MessageHeader& header, uint32_t length) noexcept {
  static_assert(offsetof(MessageHeader, link_word) == 0);
  uint64_t first;
  std::memcpy(&first, &header, sizeof first);
  first = first >> 32 << 32 | length;
  std::memcpy(to, &first, sizeof first);
  std::memcpy(to + sizeof first, reinterpret_cast<const std::byte*>(&header) + sizeof first,
              sizeof header - sizeof first);
}

}  // namespace lintel

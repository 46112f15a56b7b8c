// Checks of frames. Message path.
#include "reliable/frame.h"

#include <cstring>

#include "util/crc32c.h"

namespace lintel {

namespace {
constexpr size_t checked_header_bytes = sizeof(FrameHeader) - sizeof(uint32_t);
}

uint32_t connection_seed(uint64_t receiver, uint64_t sender) noexcept {
  const uint64_t numbers[2] = {receiver, sender};
  return crc32c(~handshake_seed, numbers, sizeof numbers);
}

uint32_t body_check(uint32_t seed, const void* body, size_t bytes) noexcept {
  return crc32c(seed, body, bytes);
}

uint32_t finish_check(uint32_t body_check, const FrameHeader& header) noexcept {
  return ~crc32c(body_check, reinterpret_cast<const std::byte*>(&header) + sizeof(uint32_t),
                 checked_header_bytes);
}

bool check_frame(uint32_t seed, const std::byte* frame, size_t bytes) noexcept {
  FrameHeader header;
  std::memcpy(&header, frame, sizeof header);
  return finish_check(body_check(seed, frame + sizeof header, bytes - sizeof header), header) ==
         header.check;
}

}  // namespace lintel

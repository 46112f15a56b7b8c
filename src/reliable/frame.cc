// Checks of frames. Message path.
#include "reliable/frame.h"

#include <cstring>

#include "util/crc32c.h"
#include "util/guarded_memory.h"

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

bool guarded_body_check(uint32_t seed, const void* body, size_t bytes, uint32_t& check) noexcept {
  struct Work {
    uint32_t seed;
    const void* body;
    size_t bytes;
    uint32_t check;
  } work{seed, body, bytes, 0};
  const bool readable = guarded_call(
      [](void* argument) {
        auto& w = *static_cast<Work*>(argument);
        w.check = crc32c(w.seed, w.body, w.bytes);
      },
      &work);
  check = work.check;
  return readable;
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

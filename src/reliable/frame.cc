// Checks of frames. Message path.
#include "reliable/frame.h"

#include <cstring>

#include "util/crc32c.h"

namespace lintel {

uint32_t connection_seed(uint64_t receiver, uint64_t sender) noexcept {
  const uint64_t numbers[2] = {receiver, sender};
  return crc32c(~handshake_seed, numbers, sizeof numbers);
}

uint32_t finish_check(uint32_t body_check, const FrameHeader& header) noexcept {
  // Put together in registers: what was just written in small pieces cannot be read in large ones
  // without waiting.
  const uint32_t first = uint32_t{header.version} |
                         uint32_t{static_cast<uint8_t>(header.type)} << 8 |
                         uint32_t{header.flags} << 16 | uint32_t{header.ack_delay} << 24;
  return ~crc32c_of_words(body_check, first, header.connection,
                          header.sequence | uint64_t{header.acknowledged} << 32, header.selective);
}

bool check_frame(uint32_t seed, const std::byte* frame, size_t bytes) noexcept {
  FrameHeader header;
  std::memcpy(&header, frame, sizeof header);
  return finish_check(body_check(seed, frame + sizeof header, bytes - sizeof header), header) ==
         header.check;
}

}  // namespace lintel

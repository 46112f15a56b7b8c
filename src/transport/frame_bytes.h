// The length of a frame to send. Message path.
#pragma once

#include "transport/packet_link.h"

namespace lintel {

[[nodiscard]] inline uint64_t frame_bytes(const OutboundFrame& frame) noexcept {
  uint64_t sum = 0;
  for (unsigned i = 0; i < frame.count; ++i) sum += frame.pieces[i].length;
  return sum;
}

}  // namespace lintel

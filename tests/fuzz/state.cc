// The hash that distinguishes states. Set-up path.
#include "fuzz/state.h"

namespace lintel::fuzz {

uint64_t State::hash() const {
  uint64_t h = mix(mix(0x51ed27, enabled ? 1 : 2), disabled_events);
  for (const auto& list : lists) {
    h = mix(h, 77);
    for (const uint32_t id : list) h = mix(h, id);
  }
  for (const Header& header : unexpected)
    h = mix(mix(mix(h, header.message), header.entry), header.offset);
  for (const auto& [id, live] : entries) {
    h = mix(mix(mix(h, id), static_cast<uint64_t>(live.life)), live.offset);
    for (const std::byte cell : live.cells) h = mix(h, static_cast<uint64_t>(cell));
  }
  for (const Count& count : counts) h = mix(mix(h, count.success), count.failure);
  for (const auto& [id, count] : descriptor_counts)
    h = mix(mix(mix(h, id), count.success), count.failure);
  // Deliveries of different threads: their order makes no difference any more.
  uint64_t sum = 0;
  for (const Delivery& delivery : deliveries)
    sum += mix(mix(mix(0x51ed27, delivery.message), delivery.entry), delivery.offset);
  h = mix(h, sum);
  return h;
}

}  // namespace lintel::fuzz

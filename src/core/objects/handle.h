// Handles: 64-bit numbers that name an object, its type, its interface and its generation
// (spec 3.3.2, implementation notes 4 and 5). Message path: pure arithmetic.
//
//   63..61 type   60..56 interface index   55..48 incarnation of the interface
//   47..24 generation of the object        23..0  index within its pool
#pragma once

#include <cstdint>

#include "core/events/live_handle.h"
#include "portals4.h"

namespace lintel {

enum class HandleType : uint8_t { interface = 1, memory_descriptor, entry, event_queue, counter };

inline constexpr uint32_t handle_index_limit = 1u << handle_index_bits;

struct HandleFields {
  HandleType type;
  uint8_t interface_index;
  uint8_t incarnation;
  uint32_t generation;
  uint32_t index;
};

[[nodiscard]] constexpr uint64_t encode_handle(const HandleFields& f) noexcept {
  return uint64_t{static_cast<uint8_t>(f.type)} << 61 | uint64_t{f.interface_index} << 56 |
         uint64_t{f.incarnation} << 48 |
         uint64_t{f.generation & handle_generation_mask} << handle_index_bits | f.index;
}

[[nodiscard]] constexpr HandleFields decode_handle(uint64_t handle) noexcept {
  return {static_cast<HandleType>(handle >> 61), static_cast<uint8_t>(handle >> 56 & 0x1f),
          static_cast<uint8_t>(handle >> 48),
          static_cast<uint32_t>(handle >> handle_index_bits) & handle_generation_mask,
          static_cast<uint32_t>(handle) & (handle_index_limit - 1)};
}

[[nodiscard]] constexpr unsigned interface_index_of(uint64_t handle) noexcept {
  return static_cast<unsigned>(handle >> 56 & 0x1f);
}

// List entries count generations upwards: odd while alive, even while free.
[[nodiscard]] constexpr bool generation_is_live(uint32_t generation) noexcept {
  return (generation & 1) != 0;
}

}  // namespace lintel

// Cookies name operations that wait for an answer of a peer: an index with a generation, so that an
// old cookie names nothing. Message path.
#pragma once

#include <cstdint>

namespace lintel {

inline constexpr uint32_t cookie_index_bits = 24;

[[nodiscard]] constexpr uint32_t make_cookie(uint32_t index, uint8_t generation) noexcept {
  return index | uint32_t{generation} << cookie_index_bits;
}
[[nodiscard]] constexpr uint32_t cookie_index(uint32_t cookie) noexcept {
  return cookie & ((1u << cookie_index_bits) - 1);
}
[[nodiscard]] constexpr uint8_t cookie_generation(uint32_t cookie) noexcept {
  return static_cast<uint8_t>(cookie >> cookie_index_bits);
}

}  // namespace lintel

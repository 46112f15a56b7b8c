// Keys of exposed memory as peers get them: the key of the window or registration, the
// exposure that it is part of, and the queue pair through which it can be used.
#pragma once

#include <cstdint>

namespace lintel {

inline constexpr unsigned exposure_index_bits = 20;

[[nodiscard]] inline uint64_t exposure_key(uint32_t index, uint32_t channel_number,
                                           uint32_t window_key) noexcept {
  return (uint64_t{channel_number} << exposure_index_bits | index) << 32 | window_key;
}
[[nodiscard]] inline uint32_t exposure_of_key(uint64_t key) noexcept {
  return static_cast<uint32_t>(key >> 32) & ((1u << exposure_index_bits) - 1);
}
[[nodiscard]] inline bool is_key_of_channel(uint64_t key, uint32_t channel_number) noexcept {
  return key >> (32 + exposure_index_bits) == (channel_number & 0xfff);
}

}  // namespace lintel

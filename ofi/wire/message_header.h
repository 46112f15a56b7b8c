// Agreement of the two ends of a message beyond its tag: bit 63 of the match bits, and the 64 bits
// of header data. Message path.
#pragma once

#include <portals4.h>

#include <cstdint>

namespace lintel::ofi {

// In the match bits: the data stays at the sender if no receive is posted.
inline constexpr ptl_match_bits_t long_bit = uint64_t{1} << 63;

// Header data: [63] there is data for the completion, [62..55] index of the sender's endpoint,
// [54..32] key of a long message, [31..0] data for the completion.
struct MessageHeader {
  static constexpr uint64_t data_flag = uint64_t{1} << 63;
  static constexpr unsigned index_shift = 55;
  static constexpr unsigned key_shift = 32;
  static constexpr uint32_t key_mask = (1u << 23) - 1;

  uint64_t bits;

  [[nodiscard]] static constexpr uint64_t with_data(uint64_t data) noexcept {
    return data_flag | (data & 0xffffffff);
  }
  [[nodiscard]] static constexpr uint64_t with_index(uint32_t index) noexcept {
    return uint64_t{index} << index_shift;
  }
  [[nodiscard]] constexpr bool has_data() const noexcept { return (bits & data_flag) != 0; }
  [[nodiscard]] constexpr uint32_t data() const noexcept {
    return has_data() ? static_cast<uint32_t>(bits) : 0;
  }
  [[nodiscard]] constexpr uint32_t index() const noexcept { return bits >> index_shift & 0xff; }
  [[nodiscard]] constexpr uint32_t key() const noexcept { return bits >> key_shift & key_mask; }
  [[nodiscard]] constexpr MessageHeader with_key(uint32_t key) const noexcept {
    return {(bits & ~(uint64_t{key_mask} << key_shift)) | uint64_t{key} << key_shift};
  }
};

// In the match bits of the entry that takes probes, beside the keys of long messages.
inline constexpr ptl_match_bits_t probe_bits = uint64_t{1} << 62;

}  // namespace lintel::ofi

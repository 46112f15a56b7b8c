// Criteria of a match list entry, and the fields of a message that they are compared with (spec
// 2.5.2, 3.12).
// Message path: pure arithmetic.
#pragma once

#include <bit>
#include <cstdint>

#include "transport/message.h"

namespace lintel {

// The source of a message as one number, a ptl_process_t: nid and pid on physical interfaces, the
// rank on logical.
[[nodiscard]] constexpr uint64_t source_of(ProcessId id) noexcept {
  return std::bit_cast<uint64_t>(id);
}
[[nodiscard]] constexpr uint64_t source_of_rank(uint32_t rank) noexcept { return rank; }

inline constexpr uint64_t source_mask_exact = ~uint64_t{0};
inline constexpr uint64_t source_mask_any = 0;
inline constexpr uint64_t source_mask_nid = ~uint64_t{0} >> 32;
inline constexpr uint64_t source_mask_pid = ~uint64_t{0} << 32;

struct MatchCriteria {
  uint64_t match_bits = 0;
  uint64_t ignore_bits = 0;
  uint64_t source = 0;       // already masked
  uint64_t source_mask = 0;  // zero bits are wildcards

  [[nodiscard]] constexpr bool matches(uint64_t bits, uint64_t from) const noexcept {
    return (((bits ^ match_bits) & ~ignore_bits) | ((from ^ source) & source_mask)) == 0;
  }
};

}  // namespace lintel

// The limits of a logical interface: what is offered and what is granted (spec 3.6.1).
// Set-up path.
#pragma once

#include "portals4.h"

namespace lintel {

// The largest values that an interface grants, whatever is desired.
inline constexpr int largest_pt_index = 4095;
inline constexpr int largest_entries = 1 << 22;
inline constexpr int largest_unexpected_headers = 1 << 22;
inline constexpr int largest_mds = 1 << 20;
inline constexpr int largest_eqs = 1 << 16;
inline constexpr int largest_cts = 1 << 20;
inline constexpr int largest_iovecs = 1 << 20;
inline constexpr int largest_triggered_ops = 1 << 22;
inline constexpr ptl_size_t largest_message_bytes = (ptl_size_t{1} << 48) - 1;
inline constexpr ptl_size_t largest_atomic_bytes = 2048;
inline constexpr ptl_size_t largest_volatile_bytes = 512;
// Messages of up to this size are delivered by the time the next one of the same initiator is
// looked at.
inline constexpr ptl_size_t largest_ordered_bytes = 4096;

// Returns the limits of an interface for which `desired` (may be NULL) was requested: every field
// is at least the specification's minimum, at most the largest above, otherwise as desired. NULL, 0
// and negative values request the default.
[[nodiscard]] ptl_ni_limits_t grant_limits(const ptl_ni_limits_t* desired) noexcept;

}  // namespace lintel

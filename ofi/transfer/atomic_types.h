// Which atomics of libfabric there are, and what they are in Portals. Set-up path, and tables for
// the message path.
#pragma once

#include <portals4.h>

#include <cstddef>

#include <rdma/fi_atomic.h>

namespace lintel::ofi {

// The three families of calls: fi_atomic, fi_fetch_atomic, fi_compare_atomic.
enum class AtomicCall { update, fetch, compare };

// Bytes of an item; 0 for a type that Portals does not have.
[[nodiscard]] size_t item_bytes(fi_datatype type) noexcept;
[[nodiscard]] ptl_datatype_t portals_type(fi_datatype type) noexcept;
// For FI_ATOMIC_READ the operation that changes nothing, see neutral_items().
[[nodiscard]] ptl_op_t portals_operation(fi_datatype type, fi_op operation) noexcept;
[[nodiscard]] bool is_available(AtomicCall call, fi_datatype type, fi_op operation) noexcept;
// Items of a call at most.
[[nodiscard]] size_t most_items(fi_datatype type) noexcept;

// Items that change nothing when the operation of FI_ATOMIC_READ is applied, most_items() of them:
// a bitwise OR with 0, and for floating point a sum with -0.0, which keeps the sign of zeros.
[[nodiscard]] const void* neutral_items(fi_datatype type) noexcept;

inline constexpr size_t most_atomic_bytes = 2048;  // max_atomic_size, max_fetch_atomic_size

}  // namespace lintel::ofi

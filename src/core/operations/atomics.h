// The atomic operations of Portals on target memory (spec 3.15.4-3.15.7, table 3-4).
// Message path: one indirect call per request.
//
// Items of 1, 2, 4 and 8 bytes (PTL_FLOAT, PTL_DOUBLE and PTL_FLOAT_COMPLEX included) at an address
// that is a multiple of their size are atomic against the processor and against other processes.
// Larger and unaligned items, and items that span elements of an iovec, are atomic against each
// other within this process. So are items in memory of a device, which are copied there and back:
// only Portals operations see them as atomic, not what runs on the device.
//
// Integers wrap. Logical operations store 0 or 1. PTL_MIN and PTL_MAX keep the target if either
// value is not a number. Conditional swaps compare values: -0.0 equals 0.0, a NaN equals nothing,
// the padding of a long double does not count; PTL_CSWAP_LE swaps if operand <= target, and so on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/objects/memory_region.h"
#include "portals4.h"
#include "transport/message.h"

namespace lintel {

enum class AtomicFunction : uint8_t { atomic, fetch_atomic, swap };
[[nodiscard]] constexpr AtomicFunction function_of(MessageKind kind) noexcept {
  return kind == MessageKind::atomic ? AtomicFunction::atomic
         : kind == MessageKind::swap ? AtomicFunction::swap
                                     : AtomicFunction::fetch_atomic;
}

inline constexpr unsigned atomic_operations = PTL_MSWAP + 1;
inline constexpr unsigned atomic_datatypes = PTL_LONG_DOUBLE_COMPLEX + 1;
inline constexpr size_t max_datatype_size = 2 * sizeof(long double);

namespace atomics_detail {
inline constexpr uint8_t datatype_sizes[atomic_datatypes] = {
    1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, sizeof(long double), 2 * sizeof(long double)};
}

// Size of one item in bytes; 0 for a value that names no datatype.
[[nodiscard]] constexpr size_t datatype_size(ptl_datatype_t datatype) noexcept {
  return datatype < atomic_datatypes ? atomics_detail::datatype_sizes[datatype] : 0;
}

// Table 3-4. False for unknown operations and datatypes as well.
[[nodiscard]] bool atomic_allowed(ptl_op_t operation, ptl_datatype_t datatype,
                                  AtomicFunction function) noexcept;

// PTL_CSWAP and its variants, and PTL_MSWAP: one item per request, and an operand (spec 3.15.7).
[[nodiscard]] constexpr bool is_single_item(ptl_op_t operation) noexcept {
  return operation >= PTL_CSWAP && operation <= PTL_MSWAP;
}

// Applies `operation` to `items` items on [offset, offset + items * size) of `region`. `data`: the
// initiator's values, as many bytes. `operand`: one item if is_single_item(), not looked at
// otherwise. `fetched`: receives the values from before, or null. All may have any alignment; none
// of the three may overlap the region. The combination must be one that table 3-4 allows. False:
// part of the range is inaccessible (PTL_NI_SEGV; some items may have been changed) or outside the
// region (none was).
[[nodiscard]] bool apply_atomic(ptl_op_t operation, ptl_datatype_t datatype,
                                const MemoryRegion& region, uint64_t offset, const std::byte* data,
                                const std::byte* operand, std::byte* fetched,
                                size_t items) noexcept;

}  // namespace lintel

// Size of pools where the address space of the process is limited (ulimit -v). Set-up path.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lintel {

// Returns at most `capacity` objects, which take at most a thirty-second part of the address space
// that the limit leaves.
[[nodiscard]] uint32_t fitting_capacity(uint32_t capacity, size_t object_bytes) noexcept;

}  // namespace lintel

// Distance that keeps what different threads write out of one cache line. Only within a process:
// layouts of shared memory do not depend on it.
#pragma once

#include <cstddef>

namespace lintel {

inline constexpr size_t cache_line_bytes = LINTEL_CACHE_LINE_BYTES;
static_assert(cache_line_bytes == 64 || cache_line_bytes == 128 || cache_line_bytes == 256);

}  // namespace lintel

// Unpredictable numbers from the kernel. Connection path.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lintel {

// False: the kernel has none, which does not change while it runs.
bool fill_random(void* data, size_t bytes) noexcept;
[[nodiscard, gnu::visibility("default")]] uint64_t random_u64() noexcept;

}  // namespace lintel

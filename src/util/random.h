// Unpredictable numbers from the kernel. Connection path.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lintel {

// False: the kernel has none, or a filter of system calls denies them.
bool fill_random(void* data, size_t bytes) noexcept;
// Then one that only differs from those before. For what is not secret.
[[nodiscard, gnu::visibility("default")]] uint64_t random_u64() noexcept;

}  // namespace lintel

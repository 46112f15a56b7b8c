// CRC-32C of long buffers by multiplication without carry, on x86-64. Message path.
//
// Folding: a block of bits can be moved forward in a message, and joined with what lies there, by
// multiplying it with a power of x modulo the polynomial, without changing the check of the whole.
// So many blocks are read, moved and joined at once, and only the last one is divided.
#pragma once

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>

namespace lintel {

// Takes at least so many bytes, 256 a step with AVX-512 and VPCLMULQDQ, and leaves less than 64 for
// others: `from` and `bytes` are what is left then. Only where can_fold_wide() is true.
inline constexpr size_t wide_folding_bytes = 256;
[[nodiscard]] bool can_fold_wide() noexcept;
[[nodiscard]] uint32_t fold_wide(uint32_t seed, const unsigned char*& from, size_t& bytes) noexcept;

}  // namespace lintel

#endif

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

// Each takes at least so many bytes, and leaves less than that, or less than 64, for others: `from`
// and `bytes` are what is left then. Only on processors for which can_fold_*() is true.

// 256 bytes a step with AVX-512 and VPCLMULQDQ.
inline constexpr size_t wide_folding_bytes = 256;
[[nodiscard]] bool can_fold_wide() noexcept;
[[nodiscard]] uint32_t fold_wide(uint32_t seed, const unsigned char*& from, size_t& bytes) noexcept;

// With AVX2 and VPCLMULQDQ. Such processors multiply as many bytes a cycle as the instruction for
// the check takes, in other units; so a half of the bytes goes through either.
inline constexpr size_t mixed_folding_bytes = 544;
[[nodiscard]] bool can_fold_mixed() noexcept;
[[nodiscard]] uint32_t fold_mixed(uint32_t seed, const unsigned char*& from,
                                  size_t& bytes) noexcept;

}  // namespace lintel

#endif

// CRC-32C (Castagnoli), the check of frames. Message path. By folding where the processor has
// VPCLMULQDQ with AVX-512; by CRC instructions where there are any (SSE 4.2, ARMv8 CRC32);
// by tables otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// Exported for modules and programs of this version, see cmake/portals.map.in.
#pragma GCC visibility push(default)
namespace lintel {

// The check of `bytes` bytes at `data`, continuing from `seed`: crc32c(crc32c(s, a), b) is the
// check of a followed by b. The usual CRC-32C of a buffer is ~crc32c(~0u, ...); no inversion
// happens here.
[[nodiscard]] uint32_t crc32c(uint32_t seed, const void* data, size_t bytes) noexcept;

// The same for 28 bytes in registers: those of `first`, then those of the others, each from its
// lowest byte on.
[[nodiscard]] uint32_t crc32c_of_words(uint32_t seed, uint32_t first, uint64_t second,
                                       uint64_t third, uint64_t fourth) noexcept;

// A method of computing the check. All have the same results.
struct Crc32cMethod {
  const char* name;
  bool (*usable)() noexcept;  // whether this processor has the instructions
  uint32_t (*check)(uint32_t seed, const void* data, size_t bytes) noexcept;
};

// The fastest first; the last one, by tables, is usable everywhere.
[[nodiscard]] std::span<const Crc32cMethod> crc32c_methods() noexcept;

// Name of the method of crc32c() for long data.
[[nodiscard]] const char* crc32c_method() noexcept;

}  // namespace lintel
#pragma GCC visibility pop

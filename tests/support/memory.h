// Buffers with known contents, and inaccessible memory.
#pragma once

#include <portals4.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "support/rank.h"

namespace lintel::test {

// The byte at `index` of the pattern number `seed`.
[[nodiscard]] constexpr std::byte pattern_at(uint32_t seed, std::size_t index) {
  const auto position = static_cast<uint32_t>(index);
  return static_cast<std::byte>((position * 131u + (position >> 8u) * 17u + seed * 59u + 7u) &
                                0xffu);
}

// Writes a pattern, beginning with its byte number `first`.
void fill(std::span<std::byte> memory, uint32_t seed, std::size_t first = 0);
// Fails unless the memory holds that pattern; says where it differs.
void expect_pattern(std::span<const std::byte> memory, uint32_t seed, std::size_t first = 0,
                    Place place = Place::current());
// Fails unless every byte has this value.
void expect_bytes(std::span<const std::byte> memory, std::byte value,
                  Place place = Place::current());

// Pages with inaccessible memory before and after them.
class GuardedPages {
 public:
  explicit GuardedPages(std::size_t pages);
  ~GuardedPages();
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  [[nodiscard]] std::span<std::byte> accessible() const noexcept;
  [[nodiscard]] std::byte* end() const noexcept;  // first inaccessible byte after them
  static inline const std::size_t page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  // This many bytes behind them are certain to be inaccessible. A message that continues after the
  // first fault must not reach other mappings.
  static constexpr std::size_t gap_bytes = 1 << 20;

 private:
  [[nodiscard]] std::size_t mapped_bytes() const noexcept {
    return (pages_ + 1) * page_bytes + gap_bytes;
  }

  std::byte* mapping_;
  std::size_t pages_;
};

// `pieces` non-overlapping pieces of `memory` in random order, of random lengths (some zero), and
// the positions in `memory` of the bytes that they make up, in order.
struct Scatter {
  std::vector<ptl_iovec_t> pieces;
  std::vector<std::size_t> positions;
};
[[nodiscard]] Scatter random_scatter(std::mt19937& random, std::span<std::byte> memory,
                                     std::size_t pieces, std::size_t longest_piece);

}  // namespace lintel::test

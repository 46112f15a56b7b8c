// The memory of an entry or a descriptor: one range, or the pieces of a PTL_IOVEC. Set-up path.
#pragma once

#include <portals4.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lintel::fuzz {

struct Layout {
  struct Piece {
    uint64_t start;  // in the memory that contains the layout
    uint64_t length;
  };
  std::vector<Piece> pieces;

  [[nodiscard]] uint64_t length() const {
    uint64_t total = 0;
    for (const Piece& piece : pieces) total += piece.length;
    return total;
  }

  // Calls `visit(start, length, done)` for each contiguous part of [offset, offset + length).
  template <typename Visit>
  void for_each(uint64_t offset, uint64_t length, Visit&& visit) const {
    uint64_t done = 0;
    for (const Piece& piece : pieces) {
      if (length == 0) return;
      if (offset >= piece.length) {
        offset -= piece.length;
        continue;
      }
      const uint64_t bytes = std::min(piece.length - offset, length);
      visit(piece.start + offset, bytes, done);
      done += bytes;
      length -= bytes;
      offset = 0;
    }
  }

  // The position of the byte at `offset`, which must be within the layout.
  [[nodiscard]] uint64_t position(uint64_t offset) const {
    uint64_t found = 0;
    for_each(offset, 1, [&](uint64_t start, uint64_t, uint64_t) { found = start; });
    return found;
  }

  [[nodiscard]] std::vector<ptl_iovec_t> vectors(std::byte* memory) const {
    std::vector<ptl_iovec_t> all;
    for (const Piece& piece : pieces) all.push_back({memory + piece.start, piece.length});
    return all;
  }
};

// A hash of `length` bytes, which `byte_at(position)` returns.
template <typename ByteAt>
[[nodiscard]] uint64_t hash_of(const Layout& layout, uint64_t offset, uint64_t length,
                               ByteAt&& byte_at) {
  uint64_t hash = 0xcbf29ce484222325u;
  layout.for_each(offset, length, [&](uint64_t start, uint64_t bytes, uint64_t) {
    for (uint64_t i = 0; i < bytes; ++i)
      hash = (hash ^ static_cast<uint64_t>(byte_at(start + i))) * 0x100000001b3u;
  });
  return hash;
}

}  // namespace lintel::fuzz

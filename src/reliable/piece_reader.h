// Walks through the pieces of a payload, copying it bit by bit. Message path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "transport/message.h"
#include "util/guarded_memory.h"

namespace lintel {

class PieceReader {
 public:
  PieceReader(const Piece* pieces, unsigned count) noexcept : piece_(pieces), left_(count) {}
  // False: the application's memory is not there (PTL_NI_SEGV).
  [[nodiscard]] bool read(std::byte* to, uint64_t bytes) noexcept {
    while (bytes != 0 && left_ != 0) {
      const uint64_t part = std::min(piece_->length - offset_, bytes);
      if (part != 0 && !guarded_copy(to, piece_->base + offset_, part)) return false;
      to += part;
      bytes -= part;
      offset_ += part;
      if (offset_ < piece_->length) continue;
      ++piece_;
      --left_;
      offset_ = 0;
    }
    return bytes == 0;
  }

 private:
  const Piece* piece_;
  unsigned left_;
  uint64_t offset_ = 0;
};

}  // namespace lintel

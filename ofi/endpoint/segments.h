// Memory of an operation in several pieces. It is kept until the operation ends, since Portals
// reads the array. Message path, but only for operations with more than one piece.
#pragma once

#include <portals4.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>

#include "base/limits.h"

namespace lintel::ofi {

struct Segments {
  std::array<iovec, most_segments> pieces;
  size_t count = 0;
  ptl_handle_md_t descriptor = PTL_INVALID_HANDLE;  // over the pieces, if something is sent or got

  ~Segments() {
    if (descriptor != PTL_INVALID_HANDLE) PtlMDRelease(descriptor);
  }
};

[[nodiscard]] size_t total_bytes(const iovec* pieces, size_t count) noexcept;
// Copies from, or to, the pieces as far as both sides reach. Returns bytes.
size_t gather(void* to, size_t size, const iovec* pieces, size_t count) noexcept;
size_t scatter(const iovec* pieces, size_t count, const void* from, size_t size) noexcept;

}  // namespace lintel::ofi

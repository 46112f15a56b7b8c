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
// Copies payload: the memory of the program may be that of a device. False: the driver failed.
[[nodiscard]] bool copy_payload(void* to, const void* from, size_t bytes) noexcept;
// The same from, or to, pieces as far as both sides reach.
[[nodiscard]] bool gather(void* to, size_t size, const iovec* pieces, size_t count) noexcept;
[[nodiscard]] bool scatter(const iovec* pieces, size_t count, const void* from,
                           size_t size) noexcept;

}  // namespace lintel::ofi

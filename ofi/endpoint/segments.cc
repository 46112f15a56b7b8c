#include "endpoint/segments.h"

#include <portals4_lintel.h>

#include <algorithm>

namespace lintel::ofi {

size_t total_bytes(const iovec* pieces, size_t count) noexcept {
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) total += pieces[i].iov_len;
  return total;
}

bool copy_payload(void* to, const void* from, size_t bytes) noexcept {
  return PtlLintelDeviceCopy(to, from, bytes) == PTL_OK;
}

bool gather(void* to, size_t size, const iovec* pieces, size_t count) noexcept {
  auto* place = static_cast<char*>(to);
  for (size_t i = 0; i < count && size != 0; ++i) {
    const size_t part = std::min(pieces[i].iov_len, size);
    if (!copy_payload(place, pieces[i].iov_base, part)) return false;
    place += part;
    size -= part;
  }
  return true;
}

bool scatter(const iovec* pieces, size_t count, const void* from, size_t size) noexcept {
  const auto* place = static_cast<const char*>(from);
  for (size_t i = 0; i < count && size != 0; ++i) {
    const size_t part = std::min(pieces[i].iov_len, size);
    if (!copy_payload(pieces[i].iov_base, place, part)) return false;
    place += part;
    size -= part;
  }
  return true;
}

}  // namespace lintel::ofi

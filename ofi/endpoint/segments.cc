#include "endpoint/segments.h"

#include <algorithm>
#include <cstring>

namespace lintel::ofi {

size_t total_bytes(const iovec* pieces, size_t count) noexcept {
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) total += pieces[i].iov_len;
  return total;
}

size_t gather(void* to, size_t size, const iovec* pieces, size_t count) noexcept {
  size_t done = 0;
  for (size_t i = 0; i < count && done < size; ++i) {
    const size_t part = std::min(pieces[i].iov_len, size - done);
    if (part != 0) memcpy(static_cast<char*>(to) + done, pieces[i].iov_base, part);
    done += part;
  }
  return done;
}

size_t scatter(const iovec* pieces, size_t count, const void* from, size_t size) noexcept {
  size_t done = 0;
  for (size_t i = 0; i < count && done < size; ++i) {
    const size_t part = std::min(pieces[i].iov_len, size - done);
    if (part != 0) memcpy(pieces[i].iov_base, static_cast<const char*>(from) + done, part);
    done += part;
  }
  return done;
}

}  // namespace lintel::ofi

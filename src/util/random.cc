#include "util/random.h"

#include <sys/random.h>

#include <cerrno>

#include "util/without_cancellation.h"

namespace lintel {

bool fill_random(void* data, size_t bytes) noexcept {
  const WithoutCancellation scope;
  auto* to = static_cast<unsigned char*>(data);
  while (bytes != 0) {
    const ssize_t got = getrandom(to, bytes, 0);
    if (got > 0) {
      to += got;
      bytes -= static_cast<size_t>(got);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

uint64_t random_u64() noexcept {
  uint64_t value = 0;
  fill_random(&value, sizeof value);
  return value;
}

}  // namespace lintel

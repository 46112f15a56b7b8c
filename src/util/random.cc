#include "util/random.h"

#include <sys/random.h>
#include <unistd.h>

#include <atomic>

#include "util/clock.h"
#include "util/uninterrupted.h"
#include "util/without_cancellation.h"

namespace lintel {

bool fill_random(void* data, size_t bytes) noexcept {
  const WithoutCancellation scope;
  auto* to = static_cast<unsigned char*>(data);
  while (bytes != 0) {
    const ssize_t got = uninterrupted([&] { return getrandom(to, bytes, 0); });
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

// The finalizer of SplitMix64 maps no two numbers to one.
uint64_t random_u64() noexcept {
  static std::atomic<uint64_t> next{now_ns() ^ static_cast<uint64_t>(getpid()) << 40};
  uint64_t value = 0;
  if (fill_random(&value, sizeof value)) return value;
  value = next.fetch_add(0x9e3779b97f4a7c15, std::memory_order_relaxed);
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

}  // namespace lintel

#include "util/address_space.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "util/assert.h"
#include "util/new_descriptor.h"

namespace lintel {

namespace {

// Several pools are of this size, and children made by fork() have those of their parents, too.
constexpr uint64_t share = 32;

uint64_t address_space_in_use() noexcept {
  const Stream file = open_for_reading("/proc/self/statm");
  uint64_t pages = 0;
  if (file == nullptr || std::fscanf(file.get(), "%" SCNu64, &pages) != 1) return 0;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

uint32_t fitting_capacity(uint32_t capacity, size_t object_bytes) noexcept {
  LINTEL_ASSERT(capacity != 0 && object_bytes != 0);
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return capacity;
  const uint64_t used = std::min<uint64_t>(address_space_in_use(), limit.rlim_cur);
  const uint64_t fitting = (limit.rlim_cur - used) / share / object_bytes;
  return static_cast<uint32_t>(std::clamp<uint64_t>(fitting, 1, capacity));
}

}  // namespace lintel

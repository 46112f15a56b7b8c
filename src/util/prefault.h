// Mapping pages that are about to be written by one system call: a fault for each takes much longer
// in a virtual machine. Set-up path.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "util/page_size.h"

namespace lintel {

// A kernel before 5.14 refuses: pages are mapped as they are written.
inline void prefault(void* start, size_t bytes) noexcept {
#ifdef MADV_POPULATE_WRITE
  const auto address = reinterpret_cast<uintptr_t>(start);
  const uintptr_t first = page_start(address);
  static_cast<void>(
      madvise(reinterpret_cast<void*>(first), address + bytes - first, MADV_POPULATE_WRITE));
#endif
}

}  // namespace lintel

#include "core/library/process_page.h"

#include <sys/mman.h>

#include <cstdint>

#include "util/assert.h"

namespace lintel {

bool keep_from_children(ProcessPage& page) noexcept {
  LINTEL_ASSERT(reinterpret_cast<uintptr_t>(&page) % process_page_bytes == 0);
  return process_page_bytes % system_page_bytes() == 0 &&
         madvise(&page, process_page_bytes, MADV_WIPEONFORK) == 0;
}

}  // namespace lintel

/* progress_record.cc: mapping the memory that GASNETRUN_PROGRESS names. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/progress_record.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "job/job.h"
#include "job/shared_memory.h"
#include "tools/headers.h"

namespace lintel::gasnet {

ProgressRecord* g_progress_record = nullptr;

void open_progress_record() {
  const char* const path = std::getenv("GASNETRUN_PROGRESS");
  if (!path) return;
  static SharedMemory memory;
  if (!memory.open(path, progress_bytes(job().size())))
    gasnett_fatalerror_nopos("%s, memory of gasnetrun_portals4 -limit, cannot be mapped (%s)", path,
                             std::strerror(errno));
  memory.close_descriptor();
  auto* const header = static_cast<ProgressHeader*>(memory.address());
  if (header->version.load(std::memory_order_relaxed) != ProgressHeader::kVersion ||
      header->ranks != job().size())
    gasnett_fatalerror_nopos(
        "gasnetrun_portals4 -limit and this program are of different versions (%u, %u); use those of "
        "one installation",
        header->version.load(std::memory_order_relaxed), ProgressHeader::kVersion);
  g_progress_record = reinterpret_cast<ProgressRecord*>(header + 1) + job().rank();
}

}  // namespace lintel::gasnet

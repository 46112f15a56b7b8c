/* progress_record.h: what gasnetrun_portals4 -limit=SECONDS sees of the ranks of a job.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_JOB_PROGRESS_RECORD_H
#define LINTEL_GASNET_JOB_PROGRESS_RECORD_H

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lintel::gasnet {

/** Counts of one rank, in memory of the launcher. A rank whose waits increase while its works do
 * not waits for others. */
struct alignas(64) ProgressRecord {
  std::atomic<uint64_t> waits; /* polls that found nothing, in a wait */
  std::atomic<uint64_t> works; /* polls that found something, and waits that have ended */
};

/** Layout of GASNETRUN_PROGRESS. Records by rank follow. */
struct alignas(64) ProgressHeader {
  static constexpr uint32_t kVersion = 1;
  std::atomic<uint32_t> version;
  uint32_t ranks;
};
static_assert(sizeof(ProgressRecord) == 64 && sizeof(ProgressHeader) == 64);

constexpr size_t progress_bytes(size_t ranks) {
  return sizeof(ProgressHeader) + ranks * sizeof(ProgressRecord);
}

/** Set-up path: finds the record of this rank if the launcher has a limit. */
void open_progress_record();

extern ProgressRecord* g_progress_record; /* nullptr if there is no limit */

inline void note_idle_poll() {
  if (g_progress_record) g_progress_record->waits.fetch_add(1, std::memory_order_relaxed);
}
inline void note_progress() {
  if (g_progress_record) g_progress_record->works.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_JOB_PROGRESS_RECORD_H

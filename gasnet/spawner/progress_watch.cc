/* progress_watch.cc: compares counts with those of a second ago.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "spawner/progress_watch.h"

#include <cstdlib>

#include "spawner/job_memory.h"

namespace lintel::gasnet {

bool ProgressWatch::start(unsigned int ranks, unsigned int limit_s) {
  unsetenv("GASNETRUN_PROGRESS");  // this program may itself be a process of a job
  if (limit_s == 0) return true;
  void* const address = provide_memory("GASNETRUN_PROGRESS", progress_bytes(ranks));
  if (!address) return false;
  auto* const header = static_cast<ProgressHeader*>(address);
  header->ranks = ranks;
  header->version.store(ProgressHeader::kVersion, std::memory_order_relaxed);
  records_ = reinterpret_cast<ProgressRecord*>(header + 1);
  limit_s_ = limit_s;
  seen_.resize(ranks);
  return true;
}

bool ProgressWatch::only_waits(size_t rank) {
  const Seen now{records_[rank].waits.load(std::memory_order_relaxed),
                 records_[rank].works.load(std::memory_order_relaxed)};
  const Seen before = seen_[rank];
  seen_[rank] = now;
  return now.waits != before.waits && now.works == before.works;
}

bool ProgressWatch::has_expired(const std::vector<pid_t>& ranks) {
  bool is_still = true;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank] != 0 && !only_waits(rank)) is_still = false;
  still_s_ = is_still ? still_s_ + 1 : 0;
  return still_s_ > limit_s_;
}

}  // namespace lintel::gasnet

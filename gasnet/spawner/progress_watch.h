/* progress_watch.h: finds out that no rank of a job makes progress (-limit=SECONDS).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_SPAWNER_PROGRESS_WATCH_H
#define LINTEL_GASNET_SPAWNER_PROGRESS_WATCH_H

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "job/progress_record.h"

namespace lintel::gasnet {

/** Looks once a second. A rank that computes, or that has not started yet, makes progress. */
class ProgressWatch {
 public:
  /** Makes the memory and sets GASNETRUN_PROGRESS, before the ranks start.
   * @param limit_s  0: the job has no limit.
   * @return false if the kernel refuses the memory; errno says why. */
  bool start(unsigned int ranks, unsigned int limit_s);
  unsigned int limit_s() const { return limit_s_; }
  bool is_on() const { return records_ != nullptr; }
  /** To be called once a second.
   * @param ranks  processes by rank; 0: the rank has ended.
   * @return whether each rank that has not ended has only waited for the last `limit_s` seconds. */
  bool has_expired(const std::vector<pid_t>& ranks);

 private:
  struct Seen {
    uint64_t waits = 0;
    uint64_t works = 0;
  };
  bool only_waits(size_t rank);

  ProgressRecord* records_ = nullptr;
  unsigned int limit_s_ = 0;
  unsigned int still_s_ = 0; /* time for which no rank has made progress */
  std::vector<Seen> seen_;   /* state of each rank at the last look */
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_SPAWNER_PROGRESS_WATCH_H

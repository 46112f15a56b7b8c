/* job.cc: rank, size and hosts, from the run-time library. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "job/job.h"

#include <cstdio>
#include <map>

#include "tools/fatal.h"

namespace lintel::gasnet {

Job& job() {
  // Never destroyed: the thread that waits for the end of the job reads it until the process ends.
  static Job& instance = *new Job;
  return instance;
}

void Job::join() {
  ptl_job_info_t info;
  if (const int code = PtlJobGetInfo(&info); code != PTL_OK)
    gasnett_fatalerror("PtlJobGetInfo returned %d: %s", code, PtlJobError());
  rank_ = info.rank;
  size_ = info.size;
  host_count_ = info.node_count;
  hosts_.resize(size_);
  for (gex_Rank_t rank = 0; rank < size_; ++rank) {
    uint32_t host = 0;
    if (const int code = PtlJobGetNode(rank, &host); code != PTL_OK)
      gasnett_fatalerror("PtlJobGetNode(%u) returned %d: %s", rank, code, PtlJobError());
    hosts_[rank] = host;
  }
  find_ranks_of_host();
  joined_ = true;

  static char label[64];
  std::snprintf(label, sizeof label, "(rank %u of %u) ", rank_, size_);
  set_process_label(label);
}

void Job::set_hosts(const std::vector<uint64_t>& keys) {
  std::map<uint64_t, gex_Rank_t> numbers;
  for (gex_Rank_t rank = 0; rank < size_; ++rank)
    hosts_[rank] =
        numbers.emplace(keys[rank], static_cast<gex_Rank_t>(numbers.size())).first->second;
  host_count_ = static_cast<gex_Rank_t>(numbers.size());
  find_ranks_of_host();
}

void Job::find_ranks_of_host() {
  ranks_of_host_.clear();
  for (gex_Rank_t rank = 0; rank < size_; ++rank)
    if (hosts_[rank] == hosts_[rank_]) ranks_of_host_.push_back(rank);
}

}  // namespace lintel::gasnet

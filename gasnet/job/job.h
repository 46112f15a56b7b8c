/* job.h: the job that this process belongs to. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_JOB_JOB_H
#define LINTEL_GASNET_JOB_JOB_H

#include <portals4_runtime.h>

#include <vector>

#include "tools/headers.h"

namespace lintel::gasnet {

/** Rank, size and hosts. Constant from gex_Client_Init on. */
class Job {
 public:
  /** Reads the rank of this process and the hosts. To be called after Network::open(). */
  void join();
  /** Treats processes with the same key as processes of one host, in place of what the launcher
   * reports.
   * @param keys  by rank. */
  void set_hosts(const std::vector<uint64_t>& keys);

  /** @param count  of the host of rank 0; 0: unknown. */
  void set_processors(uint32_t count) { processors_ = count; }

  bool joined() const { return joined_; }
  gex_Rank_t rank() const { return rank_; }
  gex_Rank_t size() const { return size_; }
  gex_Rank_t host_count() const { return host_count_; }
  /** The number of the host of this process. Hosts are counted from 0, by their lowest rank. */
  gex_Rank_t host() const { return hosts_[rank_]; }
  /** The host of a rank. */
  gex_Rank_t host_of(gex_Rank_t rank) const { return hosts_[rank]; }
  /** The ranks on the host of this process, in increasing order. */
  const std::vector<gex_Rank_t>& ranks_of_host() const { return ranks_of_host_; }
  /** @return the number of processors of the host of rank 0, as rank 0 reads it; 0: unknown. It is
   * the same in all processes, though containers may show each process another number. */
  uint32_t processors() const { return processors_; }

 private:
  void find_ranks_of_host();

  bool joined_ = false;
  gex_Rank_t rank_ = 0;
  gex_Rank_t size_ = 1;
  gex_Rank_t host_count_ = 1;
  uint32_t processors_ = 0;
  std::vector<gex_Rank_t> hosts_;
  std::vector<gex_Rank_t> ranks_of_host_;
};

Job& job();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_JOB_JOB_H

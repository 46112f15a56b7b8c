/* system.cc: queries about the process.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "client/client.h"
#include "job/errors.h"
#include "job/job.h"
#include "job/neighbourhood.h"
#include "job/thread.h"

using namespace lintel::gasnet;

namespace {

/** The entries of an array of gex_RankInfo_t. They are valid until the process ends. */
gex_RankInfo_t* rank_info(const std::vector<gex_Rank_t>& ranks) {
  static_assert(sizeof(gex_RankInfo_t) == sizeof(gex_Rank_t));
  return reinterpret_cast<gex_RankInfo_t*>(ranks.data());
}

gex_Rank_t index_of(const std::vector<gex_Rank_t>& ranks, gex_Rank_t rank) {
  gex_Rank_t index = 0;
  while (ranks[index] != rank) ++index;
  return index;
}

}  // namespace

gex_Rank_t gex_System_QueryJobRank() { return job().rank(); }
gex_Rank_t gex_System_QueryJobSize() { return job().size(); }
uint64_t gex_System_QueryMaxThreads() { return max_threads(); }
int gex_System_QueryHiddenAMConcurrencyLevel() { return 0; }

void gex_System_QueryNbrhdInfo(gex_RankInfo_t** info_p, gex_Rank_t* info_count_p,
                               gex_Rank_t* my_info_index_p) {
  const Neighbourhood& n = neighbourhood();
  if (info_p) *info_p = rank_info(n.ranks());
  if (info_count_p) *info_count_p = n.count();
  if (my_info_index_p) *my_info_index_p = n.index();
}

void gex_System_QueryHostInfo(gex_RankInfo_t** info_p, gex_Rank_t* info_count_p,
                              gex_Rank_t* my_info_index_p) {
  const std::vector<gex_Rank_t>& ranks = job().ranks_of_host();
  if (info_p) *info_p = rank_info(ranks);
  if (info_count_p) *info_count_p = static_cast<gex_Rank_t>(ranks.size());
  if (my_info_index_p) *my_info_index_p = index_of(ranks, job().rank());
}

void gex_System_QueryMyPosition(gex_Rank_t* nbrhd_set_size_p, gex_Rank_t* nbrhd_set_rank_p,
                                gex_Rank_t* host_set_size_p, gex_Rank_t* host_set_rank_p) {
  const Neighbourhood& n = neighbourhood();
  if (nbrhd_set_size_p) *nbrhd_set_size_p = n.number_of_neighbourhoods();
  if (nbrhd_set_rank_p) *nbrhd_set_rank_p = n.number_of(job().rank());
  if (host_set_size_p) *host_set_size_p = job().host_count();
  if (host_set_rank_p) *host_set_rank_p = job().host();
}

int gex_System_QueryProgressThreads(gex_Client_t client, unsigned int* count_p,
                                    const gex_ProgressThreadInfo_t** info_p, gex_Flags_t flags) {
  if (!client || !count_p || !info_p || flags != 0)
    return report_error(GASNET_ERR_BAD_ARG, "gex_System_QueryProgressThreads: NULL or flags");
  if (!(client->flags & GEX_FLAG_DEFER_THREADS))
    return report_error(GASNET_ERR_RESOURCE,
                        "gex_System_QueryProgressThreads: gex_Client_Init had no "
                        "GEX_FLAG_DEFER_THREADS");
  // Portals makes progress by itself, so there is no thread that the client could start.
  *count_p = 0;
  *info_p = nullptr;
  return GASNET_OK;
}

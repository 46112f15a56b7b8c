/* team.cc: the team of all processes, queries. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "team/team.h"

#include "client/client.h"
#include "job/job.h"
#include "job/neighbourhood.h"

void gasneti_team::cover(gex_Rank_t first, gex_Rank_t last) {
  mapped_offsets.assign(last - first + 1, GASNETI_NOT_MAPPED);
  view.mapped_first = first;
  view.mapped_count = last - first + 1;
  view.mapped_offsets = mapped_offsets.data();
}

void gasneti_team::set_mapped_offset(gex_Rank_t rank, intptr_t offset) {
  mapped_offsets[rank - view.mapped_first] = offset;
}

namespace lintel::gasnet {

gex_EP_t local_endpoint_of(gex_TM_t tm) {
  if (!GASNETI_IS_PAIR(tm)) return tm->endpoint;
  return the_client()->endpoints[reinterpret_cast<uintptr_t>(tm) >> 17];
}

gex_TM_t new_primordial_team(gex_Client_t client, gex_EP_t endpoint, gex_Flags_t flags) {
  auto* team = new gasneti_team;
  team->view.rank = job().rank();
  team->view.size = job().size();
  team->client = client;
  team->endpoint = endpoint;
  team->flags = flags;
  team->cover(neighbourhood().ranks().front(), neighbourhood().ranks().back());
  return team;
}

}  // namespace lintel::gasnet

using namespace lintel::gasnet;

gex_Client_t gex_TM_QueryClient(gex_TM_t tm) { return tm->client; }
gex_EP_t gex_TM_QueryEP(gex_TM_t tm) { return tm->endpoint; }
gex_Flags_t gex_TM_QueryFlags(gex_TM_t tm) { return tm->flags; }
gex_Rank_t gex_TM_TranslateRankToJobrank(gex_TM_t tm, gex_Rank_t rank) {
  return endpoint_of(tm, rank).jobrank;
}
gex_Rank_t gex_TM_TranslateJobrankToRank(gex_TM_t /*tm*/, gex_Rank_t jobrank) { return jobrank; }
gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t tm, gex_Rank_t rank, gex_Flags_t /*flags*/) {
  const EndpointName name = endpoint_of(tm, rank);
  return {name.jobrank, name.index};
}
void gex_TM_SetCData(gex_TM_t tm, const void* val) { tm->client_data = val; }
void* gex_TM_QueryCData(gex_TM_t tm) { return const_cast<void*>(tm->client_data.load()); }

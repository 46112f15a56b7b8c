/* team.cc: the team of all processes, queries. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "team/team.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "client/client.h"
#include "job/job.h"
#include "job/neighbourhood.h"
#include "job/thread.h"
#include "tools/lock.h"

void gasneti_team::cover(gex_Rank_t first, gex_Rank_t last) {
  view.mapped_first = first;
  view.mapped_count = last - first + 1;
  mapped_offsets.reset(static_cast<intptr_t*>(std::calloc(view.mapped_count, sizeof(intptr_t))));
  if (!mapped_offsets)
    gasnett_fatalerror_nopos("no memory for a team of %u ranks", view.mapped_count);
  view.mapped_offsets = mapped_offsets.get();
}

void gasneti_team::set_mapped_offset(gex_Rank_t rank, std::optional<intptr_t> offset) {
  const auto place = std::lower_bound(neighbours.begin(), neighbours.end(), rank);
  if (place == neighbours.end() || *place != rank) neighbours.insert(place, rank);
  mapped_offsets.get()[rank - view.mapped_first] = offset ? *offset + 1 : 0;
}

gex_Rank_t gasneti_team::rank_of(gex_Rank_t jobrank) const {
  if (members.empty()) return jobrank;
  const auto found = std::lower_bound(
      ranks.begin(), ranks.end(), jobrank,
      [this](gex_Rank_t rank, gex_Rank_t wanted) { return members[rank] < wanted; });
  return found != ranks.end() && members[*found] == jobrank ? *found : GEX_RANK_INVALID;
}

/* Some kernels give a page to each read of fresh zeros, so only the neighbours are looked up. */
void gasneti_team::map_as(const gasneti_team& primordial) {
  std::vector<std::pair<gex_Rank_t, intptr_t>> mapped;
  for (const gex_Rank_t jobrank : primordial.neighbours) {
    const gex_Rank_t rank = rank_of(jobrank);
    const std::optional<intptr_t> offset = primordial.mapped_offset_of(jobrank);
    if (rank != GEX_RANK_INVALID && offset) mapped.emplace_back(rank, *offset);
  }
  view.mapped_count = 0;
  neighbours.clear();
  if (mapped.empty()) return;
  const auto [first, last] = std::minmax_element(mapped.begin(), mapped.end());
  cover(first->first, last->first);
  for (const auto& [rank, offset] : mapped) set_mapped_offset(rank, offset);
}

namespace lintel::gasnet {
namespace {

struct Teams {
  ProcessMutex mutex;
  std::vector<gex_TM_t> all LINTEL_GASNET_GUARDED_BY(mutex); /* except the primordial one */
  std::set<uint32_t> numbers LINTEL_GASNET_GUARDED_BY(mutex);
  uint32_t next_number LINTEL_GASNET_GUARDED_BY(mutex) = 1;
  uint32_t highest_deleted LINTEL_GASNET_GUARDED_BY(mutex) = 0;
};
Teams& teams() {
  static Teams& instance = *new Teams;
  return instance;
}

}  // namespace

gex_TM_t new_team(gex_TM_t primordial, std::vector<gex_Rank_t> members, uint32_t number,
                  gex_Flags_t flags) {
  auto* team = new gasneti_team;
  team->view.size = static_cast<gex_Rank_t>(members.size());
  team->client = primordial->client;
  team->endpoint = primordial->endpoint;
  team->number = number;
  team->flags = flags;
  team->members = std::move(members);
  team->ranks.resize(team->view.size);
  std::iota(team->ranks.begin(), team->ranks.end(), 0);
  std::sort(team->ranks.begin(), team->ranks.end(),
            [&](gex_Rank_t a, gex_Rank_t b) { return team->members[a] < team->members[b]; });
  team->view.rank = team->rank_of(job().rank());
  Teams& t = teams();
  const LockGuard lock(t.mutex);
  /* Here, so that map_all_teams() cannot come between the two. */
  team->map_as(*primordial);
  t.all.push_back(team);
  return team;
}

void delete_team(gex_TM_t tm) {
  Teams& t = teams();
  {
    const LockGuard lock(t.mutex);
    gasneti_assert(t.numbers.count(tm->number) == 1 && tm->number < t.next_number);
    std::erase(t.all, tm);
    t.numbers.erase(tm->number);
    t.highest_deleted = std::max(t.highest_deleted, tm->number);
  }
  delete tm;
}

uint32_t next_team_number() {
  const LockGuard lock(teams().mutex);
  return teams().next_number;
}

bool claim_team_number(uint32_t number) {
  Teams& t = teams();
  const LockGuard lock(t.mutex);
  t.next_number = std::max(t.next_number, number + 1);
  return number > t.highest_deleted && t.numbers.insert(number).second;
}

void give_up_team_number(uint32_t number) {
  const LockGuard lock(teams().mutex);
  gasneti_assert(teams().numbers.count(number) == 1);
  teams().numbers.erase(number);
}

void map_all_teams(gex_TM_t primordial) {
  const LockGuard lock(teams().mutex);
  for (const gex_TM_t team : teams().all) team->map_as(*primordial);
}

gex_EP_t local_endpoint_of(gex_TM_t tm) {
  if (!GASNETI_IS_PAIR(tm)) return tm->endpoint;
  return the_client()->endpoint(local_index_of(tm));
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
  check_may_communicate("gex_TM_TranslateRankToJobrank");
  return endpoint_of(tm, rank).jobrank;
}
gex_Rank_t gex_TM_TranslateJobrankToRank(gex_TM_t tm, gex_Rank_t jobrank) {
  check_may_communicate("gex_TM_TranslateJobrankToRank");
  return tm->rank_of(jobrank);
}
gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t tm, gex_Rank_t rank, gex_Flags_t /*flags*/) {
  check_may_communicate("gex_TM_TranslateRankToEP");
  const EndpointName name = endpoint_of(tm, rank);
  return {name.jobrank, name.index};
}
void gex_TM_SetCData(gex_TM_t tm, const void* val) { tm->client_data = val; }
void* gex_TM_QueryCData(gex_TM_t tm) { return const_cast<void*>(tm->client_data.load()); }

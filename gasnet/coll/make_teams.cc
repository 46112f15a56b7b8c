/* make_teams.cc: gex_TM_Split, gex_TM_Create, gex_TM_Destroy. Set-up path.
 *
 * Teams need no memory of the client: scratch space is returned to it unchanged.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <algorithm>
#include <cstdio>
#include <tuple>

#include "client/client.h"
#include "coll/gather.h"
#include "coll/team_collectives.h"
#include "endpoint/endpoint.h"
#include "job/thread.h"
#include "segment/segment.h"
#include "team/team.h"
#include "trace/trace.h"

using namespace lintel::gasnet;

namespace {

/* The size that a query recommends; 0 is not allowed. */
constexpr size_t kScratchBytes = 64;
constexpr gex_Flags_t kQueries =
    GEX_FLAG_TM_SCRATCH_SIZE_MIN | GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED;

void trace_new(const gasneti_team& team, const char* call) {
  if (team.collectives)
    LINTEL_GASNET_TRACE(
        'I', "%s: team %u, rank %u of %u, collectives of up to %zu bytes by counters, places: %u",
        call, team.number, team.view.rank, team.view.size, kSmallBytes,
        team.collectives->places().count());
  else
    LINTEL_GASNET_TRACE('I', "%s: team %u, rank %u of %u, collectives by messages", call,
                        team.number, team.view.rank, team.view.size);
}

void check_parent(const char* call, gex_TM_t tm) {
  if (!tm || GASNETI_IS_PAIR(tm)) gasnett_fatalerror_nopos("%s: give a team, and no pair", call);
}

size_t recommended_scratch(const char* call, bool takes_part, gex_Flags_t flags) {
  if (flags & GEX_FLAG_TM_SCRATCH_SIZE_MIN)
    std::fprintf(stderr,
                 "GASNet: %s: GEX_FLAG_TM_SCRATCH_SIZE_MIN is deprecated, use "
                 "GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED\n",
                 call);
  return takes_part ? kScratchBytes : 0;
}

/** The answer of a member of the parent to a number. Crosses the wire. */
struct NumberRecord {
  uint32_t next_number;
  uint32_t has_claimed;
};
static_assert(sizeof(NumberRecord) == 8);

/** Agrees on a number for a new team. At the same time another thread may make a team of the same
 * processes from another parent, and would choose the same number. So all members claim the
 * number. If one of them cannot, they try another number. Collective over the parent.
 * @param number      the highest that any member would take.
 * @param takes_part  whether this process becomes a member of a new team.
 * @return the number, claimed in all that take part. */
uint32_t agreed_number(gex_TM_t parent, uint32_t number, bool takes_part) {
  for (uint32_t attempt = 1;; ++attempt) {
    const bool is_claimed = takes_part && claim_team_number(number);
    // Different parents propose different numbers, so attempts do not collide again and again.
    const NumberRecord mine{next_team_number() + parent->number % 61 * attempt,
                            is_claimed || !takes_part};
    uint32_t next = 0;
    bool have_all = true;
    for (const NumberRecord& record : gather(parent, mine)) {
      next = std::max(next, record.next_number);
      have_all = have_all && record.has_claimed != 0;
    }
    if (have_all) return number;
    if (is_claimed) give_up_team_number(number);
    number = next;
  }
}

/** The arguments of a member of the parent. Crosses the wire. */
struct SplitRecord {
  uint32_t next_number;
  uint32_t takes_part;
  int32_t color;
  int32_t key;
};
static_assert(sizeof(SplitRecord) == 16);

uintptr_t own_segment_address() { return segment_table().of(gex_System_QueryJobRank(), 0).address; }

void set_scratch(gasneti_team& team, const void* address, size_t bytes, gex_Flags_t flags) {
  if (flags & GEX_FLAG_TM_NO_SCRATCH) return;
  auto place = reinterpret_cast<uintptr_t>(address);
  if (flags & GEX_FLAG_SCRATCH_SEG_OFFSET) place += own_segment_address();
  team.scratch = {reinterpret_cast<void*>(place), bytes};
}

const void* own_scratch(const gasneti_team& team, const gex_Addr_t* addresses, gex_Flags_t flags) {
  if (flags & GEX_FLAG_TM_NO_SCRATCH || !addresses) return nullptr;
  return addresses[flags & GEX_FLAG_TM_GLOBAL_SCRATCH ? team.view.rank : 0];
}

}  // namespace

size_t gex_TM_Split(gex_TM_t* new_tm_p, gex_TM_t parent_tm, int color, int key, void* scratch_addr,
                    size_t scratch_size, gex_Flags_t flags) {
  check_may_communicate("gex_TM_Split");
  check_parent("gex_TM_Split", parent_tm);
  if (flags & kQueries) return recommended_scratch("gex_TM_Split", new_tm_p != nullptr, flags);
  const SplitRecord mine{next_team_number(), new_tm_p != nullptr, color, key};
  const std::vector<SplitRecord> records = gather(parent_tm, mine);
  uint32_t highest = 0;
  for (const SplitRecord& record : records) highest = std::max(highest, record.next_number);
  const uint32_t number = agreed_number(parent_tm, highest, new_tm_p != nullptr);
  if (!new_tm_p) return 0;
  std::vector<std::tuple<int, gex_Rank_t>> order; /* key and rank in the parent */
  for (gex_Rank_t rank = 0; rank < records.size(); ++rank)
    if (records[rank].takes_part && records[rank].color == color)
      order.emplace_back(records[rank].key, rank);
  std::sort(order.begin(), order.end());
  std::vector<gex_Rank_t> members;
  for (const auto& [unused, rank] : order) members.push_back(endpoint_of(parent_tm, rank).jobrank);
  *new_tm_p = new_team(the_client()->team, std::move(members), number, flags);
  set_scratch(**new_tm_p, scratch_addr, scratch_size, flags);
  set_up_collectives(**new_tm_p);
  trace_new(**new_tm_p, "gex_TM_Split");
  return 0;
}

size_t gex_TM_Create(gex_TM_t* new_tms, size_t num_new_tms, gex_TM_t parent_tm,
                     gex_EP_Location_t* args, size_t numargs, gex_Addr_t* scratch_addrs,
                     size_t scratch_size, gex_Flags_t flags) {
  check_may_communicate("gex_TM_Create");
  check_parent("gex_TM_Create", parent_tm);
  if (flags & kQueries) return recommended_scratch("gex_TM_Create", numargs != 0, flags);
  std::vector<gex_Rank_t> members;
  for (size_t i = 0; i < numargs; ++i) {
    if (args[i].gex_ep_index != 0)
      gasnett_fatalerror_nopos("gex_TM_Create: endpoint %u; teams can have primordial ones only",
                               args[i].gex_ep_index);
    members.push_back(flags & GEX_FLAG_RANK_IS_JOBRANK
                          ? args[i].gex_rank
                          : endpoint_of(parent_tm, args[i].gex_rank).jobrank);
  }
  // A caller may describe a team of which it is no member.
  const auto of_caller =
      static_cast<size_t>(std::count(members.begin(), members.end(), gex_System_QueryJobRank()));
  if (numargs != 0 && num_new_tms != of_caller)
    gasnett_fatalerror_nopos(
        "gex_TM_Create: %zu new teams; %zu endpoints of this process are in args", num_new_tms,
        of_caller);
  const std::vector<uint32_t> numbers = gather(parent_tm, next_team_number());
  const uint32_t number =
      agreed_number(parent_tm, *std::max_element(numbers.begin(), numbers.end()), of_caller != 0);
  if (of_caller == 0) return 0;
  new_tms[0] = new_team(the_client()->team, std::move(members), number, flags);
  set_scratch(*new_tms[0], own_scratch(*new_tms[0], scratch_addrs, flags), scratch_size, flags);
  set_up_collectives(*new_tms[0]);
  trace_new(*new_tms[0], "gex_TM_Create");
  return 0;
}

int gex_TM_Destroy(gex_TM_t tm, gex_Memvec_t* scratch_p, gex_Flags_t flags) {
  check_may_communicate("gex_TM_Destroy");
  check_parent("gex_TM_Destroy", tm);
  if (tm == the_client()->team)
    gasnett_fatalerror_nopos("gex_TM_Destroy: the team of gex_Client_Init cannot be destroyed");
  if (!(flags & GEX_FLAG_GLOBALLY_QUIESCED)) gather(tm, char{0});
  LINTEL_GASNET_TRACE('I', "gex_TM_Destroy: team %u", tm->number);
  gex_Memvec_t scratch = tm->scratch;
  if (flags & GEX_FLAG_SCRATCH_SEG_OFFSET)
    scratch.gex_addr = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(scratch.gex_addr) -
                                               own_segment_address());
  end_collectives(*tm);
  delete_team(tm);
  if (!scratch_p || scratch.gex_len == 0) return 0;
  *scratch_p = scratch;
  return 1;
}

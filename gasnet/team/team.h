/* team.h: the object behind a gex_TM_t; which endpoint a team or pair names. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_TEAM_TEAM_H
#define LINTEL_GASNET_TEAM_TEAM_H

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "tools/headers.h"

namespace lintel::gasnet {
class NamedBarrier;
class TeamCollectives;
}  // namespace lintel::gasnet

/** `view` comes first: inline functions of the public headers read it. */
struct gasneti_team {
  gasneti_team_view view{};
  gex_Client_t client = GEX_CLIENT_INVALID;
  gex_EP_t endpoint = GEX_EP_INVALID;
  gex_Flags_t flags = 0;
  uint32_t number = 0;             /* unique among the teams of its members; the same in all */
  uint32_t gathers = 0;            /* calls of gather_bytes(), the same in all members */
  std::atomic<uint32_t> pieces{0}; /* calls of piece_calls() */
  /* The state of the room coll; NULL if there is none. */
  lintel::gasnet::TeamCollectives* collectives = nullptr;
  lintel::gasnet::NamedBarrier* named_barrier = nullptr;
  /* The rank in the job of each member; and the ranks in the team, sorted by rank in the job. Both
   * take 8 bytes a member, since all members are primordial endpoints. Empty in the team of all
   * processes, where both ranks are the same. */
  std::vector<gex_Rank_t> members;
  std::vector<gex_Rank_t> ranks;
  gex_Memvec_t scratch{}; /* memory of the client until the team is destroyed */
  std::atomic<const void*> client_data{nullptr};
  /* The target of view.mapped_offsets. Fresh zeros: only pages with neighbours use memory. */
  struct Free {
    void operator()(intptr_t* offsets) const { std::free(offsets); }
  };
  std::unique_ptr<intptr_t, Free> mapped_offsets;
  /* Ranks that set_mapped_offset() was called for, sorted. */
  std::vector<gex_Rank_t> neighbours;

  /** @return GEX_RANK_INVALID for a process that is no member. */
  gex_Rank_t rank_of(gex_Rank_t jobrank) const;
  /** Copies from `primordial` which members are mapped, and where. */
  void map_as(const gasneti_team& primordial);
  /** Makes room for the offsets of ranks from the first to the last neighbour, all unmapped. */
  void cover(gex_Rank_t first, gex_Rank_t last);
  /** @param offset  empty if the rank is not mapped. */
  void set_mapped_offset(gex_Rank_t rank, std::optional<intptr_t> offset);
  std::optional<intptr_t> mapped_offset_of(gex_Rank_t rank) const {
    const gex_Rank_t index = rank - view.mapped_first;
    const intptr_t stored = index < view.mapped_count ? view.mapped_offsets[index] : 0;
    return stored == 0 ? std::nullopt : std::optional(stored - 1);
  }
};
static_assert(offsetof(gasneti_team, view) == 0);

namespace lintel::gasnet {

/** A process and one of its endpoints. */
struct EndpointName {
  gex_Rank_t jobrank;
  gex_EP_Index_t index;
};

/** The endpoint that a team (or pair) and a rank name. */
inline EndpointName endpoint_of(gex_TM_t tm, gex_Rank_t rank) {
  if (GASNETI_IS_PAIR(tm))
    return {rank, static_cast<gex_EP_Index_t>(reinterpret_cast<uintptr_t>(tm) >> 1)};
  if (tm->members.empty()) return {rank, 0};
  return {tm->members[rank], 0};
}

/** The index of the endpoint of this process that a pair names. */
inline gex_EP_Index_t local_index_of(gex_TM_t pair) {
  return static_cast<gex_EP_Index_t>(reinterpret_cast<uintptr_t>(pair) >> 17);
}

/** The endpoint of this process that a team or pair names. */
gex_EP_t local_endpoint_of(gex_TM_t tm);

/** Makes a team of primordial endpoints.
 * @param members  ranks of the job; this process is one of them.
 * @param number   claimed by all members.
 * @param flags    the result of gex_TM_QueryFlags(). */
gex_TM_t new_team(gex_TM_t primordial, std::vector<gex_Rank_t> members, uint32_t number,
                  gex_Flags_t flags);
void delete_team(gex_TM_t tm);
/** The lowest number above all that this process has claimed. */
uint32_t next_team_number();
/** Claims a number for a team, until delete_team(). Any thread.
 * @return false if another team has the number or may have had it. */
bool claim_team_number(uint32_t number);
/** Releases a number that no team was made with. */
void give_up_team_number(uint32_t number);
/** To be called after neighbours were mapped or unmapped. */
void map_all_teams(gex_TM_t primordial);

/** Makes the team of all processes. */
gex_TM_t new_primordial_team(gex_Client_t client, gex_EP_t endpoint, gex_Flags_t flags);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_TEAM_TEAM_H

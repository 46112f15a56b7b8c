/* places.h: which members of a team are neighbours of each other. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_COLL_PLACES_H
#define LINTEL_GASNET_COLL_PLACES_H

#include <portals4.h>

#include <cstdint>
#include <vector>

#include "team/team.h"

namespace lintel::gasnet {

/** The members of a team in groups of neighbours. Each group is a place; places are in the order of
 * their first rank, the leader. If no two members are neighbours, each rank is a place, and nothing
 * is stored. */
class TeamPlaces {
 public:
  explicit TeamPlaces(const gasneti_team& team) : team_(&team) {}
  /** Makes each member a place. */
  void make_flat();
  void group();

  bool is_flat() const { return leaders_.empty(); }
  uint32_t count() const { return count_; }
  uint32_t own() const { return own_; }
  /** Members of the own place. */
  uint32_t members() const { return members_; }
  /** Index of this process among them. */
  uint32_t index() const { return index_; }
  /** Members of the largest place. */
  uint32_t most_members() const { return most_members_; }
  bool is_leader() const { return index_ == 0; }
  /** Rank in the team. */
  gex_Rank_t leader_of(uint32_t place) const { return is_flat() ? place : leaders_[place]; }
  ptl_rank_t process_at(uint32_t place) const {
    return endpoint_of(const_cast<gex_TM_t>(team_), leader_of(place)).jobrank;
  }
  uint32_t place_of(gex_Rank_t rank) const;
  /** @return how many places can run at the same time: the number of processors if the whole job is
   *         on one host, otherwise no limit. The same in all processes. */
  static uint32_t most_at_once();

 private:
  const gasneti_team* team_;
  uint32_t count_ = 0;
  uint32_t own_ = 0;
  uint32_t members_ = 1;
  uint32_t index_ = 0;
  uint32_t most_members_ = 1;
  std::vector<gex_Rank_t> leaders_;
  std::vector<uint32_t> place_by_neighbourhood_;
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_COLL_PLACES_H

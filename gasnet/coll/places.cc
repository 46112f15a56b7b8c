/* places.cc: grouping the members of a team. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll/places.h"

#include <algorithm>

#include "job/job.h"
#include "job/neighbourhood.h"

namespace lintel::gasnet {

void TeamPlaces::make_flat() {
  *this = TeamPlaces(*team_);
  count_ = team_->view.size;
  own_ = team_->view.rank;
}

void TeamPlaces::group() {
  const Neighbourhood& all = neighbourhood();
  const auto number_of = [&](gex_Rank_t rank) {
    return all.number_of(endpoint_of(const_cast<gex_TM_t>(team_), rank).jobrank);
  };
  constexpr uint32_t kUnknown = ~uint32_t{0};
  std::vector<uint32_t> members;
  place_by_neighbourhood_.assign(all.number_of_neighbourhoods(), kUnknown);
  leaders_.clear();
  for (gex_Rank_t rank = 0; rank < team_->view.size; ++rank) {
    uint32_t& place = place_by_neighbourhood_[number_of(rank)];
    if (place == kUnknown) {
      place = static_cast<uint32_t>(leaders_.size());
      leaders_.push_back(rank);
      members.push_back(0);
    }
    if (rank == team_->view.rank) index_ = members[place];
    ++members[place];
  }
  most_members_ = *std::max_element(members.begin(), members.end());
  if (most_members_ == 1) return make_flat();
  count_ = static_cast<uint32_t>(leaders_.size());
  own_ = place_by_neighbourhood_[all.number_of(job().rank())];
  members_ = members[own_];
}

uint32_t TeamPlaces::most_at_once() {
  return job().host_count() == 1 && job().processors() > 0 ? job().processors() : UINT32_MAX;
}

uint32_t TeamPlaces::place_of(gex_Rank_t rank) const {
  if (is_flat()) return rank;
  const ptl_rank_t process = endpoint_of(const_cast<gex_TM_t>(team_), rank).jobrank;
  return place_by_neighbourhood_[neighbourhood().number_of(process)];
}

}  // namespace lintel::gasnet

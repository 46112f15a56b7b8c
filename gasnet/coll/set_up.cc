/* set_up.cc: setting up the small collectives of a team, and polling them. Set-up path, except for
 * the polls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <algorithm>

#include "client/client.h"
#include "coll/collective.h"
#include "coll/gather.h"
#include "coll/team_collectives.h"
#include "job/mutex.h"
#include "job/neighbourhood.h"
#include "network/poll.h"

namespace lintel::gasnet {
namespace {

/** The collectives of all teams, for polls. */
struct Registry {
  Mutex mutex;
  std::vector<TeamCollectives*> all LINTEL_GASNET_GUARDED_BY(mutex);
};
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

bool g_can_use_network = false;

unsigned int advance_all() {
  if (!TeamCollectives::are_calls_open()) return 0;
  Registry& r = registry();
  if (!r.mutex.try_lock()) return 0;
  const LockGuard lock(r.mutex, std::adopt_lock);
  unsigned int done = 0;
  for (TeamCollectives* const collectives : r.all)
    if (collectives->has_calls()) done += collectives->advance();
  return done;
}

void keep(gasneti_team& team, std::unique_ptr<TeamCollectives> collectives) {
  Registry& r = registry();
  const LockGuard lock(r.mutex);
  r.all.push_back(collectives.get());
  team.collectives = collectives.release();
}

/** Index of a process in the neighbourhood. */
uint32_t member_of(ptl_rank_t process) {
  const std::vector<gex_Rank_t>& ranks = neighbourhood().ranks();
  return static_cast<uint32_t>(std::lower_bound(ranks.begin(), ranks.end(), process) -
                               ranks.begin());
}

NodeMemoryOfTeam take_memory(const TeamPlaces& places) {
  if (places.members() == 1 || !places.is_leader()) return {};
  return NodeMemoryOfTeam(NodeStage::bytes(places.members()));
}

std::unique_ptr<TeamCollectives> make(gasneti_team& team, const TeamPlaces& places, uint32_t offset,
                                      NodeMemoryOfTeam taken) {
  void* const memory = places.members() == 1
                           ? nullptr
                           : NodeMemory::at(member_of(places.process_at(places.own())), offset);
  auto collectives = std::make_unique<TeamCollectives>(team, places, memory, std::move(taken));
  return collectives->prepare() ? std::move(collectives) : nullptr;
}

/** Contribution of a member. Crosses the wire. */
struct Offer {
  uint32_t offset; /* offset of the memory that a leader has taken */
  uint32_t can_use_network;
};
static_assert(sizeof(Offer) == 8);

std::unique_ptr<TeamCollectives>& primordial() {
  static std::unique_ptr<TeamCollectives> instance;
  return instance;
}

}  // namespace

void set_up_collectives(gasneti_team& team) {
  TeamPlaces places(team);
  places.group();
  NodeMemoryOfTeam taken = take_memory(places);
  const std::vector<Offer> offers = gather(&team, Offer{taken.offset(), g_can_use_network});
  const bool has_memory = std::none_of(offers.begin(), offers.end(), [](const Offer& offer) {
    return offer.offset == NodeMemory::kNone;
  });
  if (!has_memory) {
    const NodeMemoryOfTeam given_back(std::move(taken));
    places.make_flat();
  }
  if (places.count() == 1)
    return keep(team, make(team, places, offers[places.leader_of(0)].offset, std::move(taken)));
  if (std::any_of(offers.begin(), offers.end(),
                  [](const Offer& offer) { return !offer.can_use_network; }))
    return;
  std::unique_ptr<TeamCollectives> made =
      make(team, places, offers[places.leader_of(places.own())].offset, std::move(taken));
  const std::vector<char> answers = gather(&team, static_cast<char>(made != nullptr));
  if (std::find(answers.begin(), answers.end(), 0) == answers.end()) keep(team, std::move(made));
}

void end_collectives(gasneti_team& team) {
  while ((team.collectives && !team.collectives->is_over()) || message_trees().has_calls_of(team))
    wait_hint(poll());
  delete team.named_barrier;
  team.named_barrier = nullptr;
  message_trees().end(team);
  if (!team.collectives) return;
  Registry& r = registry();
  {
    const LockGuard lock(r.mutex);
    std::erase(r.all, team.collectives);
  }
  delete team.collectives;
  team.collectives = nullptr;
}

bool start_team_collectives() {
  add_poll_function(advance_all);
  g_can_use_network = NetworkStage::open();
  gasneti_team& team = *the_client()->team;
  TeamPlaces places(team);
  places.group();
  if (!NodeMemory::is_enough_for(places.most_members())) places.make_flat();
  // The first call that takes memory gets offset 0.
  NodeMemoryOfTeam taken = take_memory(places);
  if (places.count() == 1 || g_can_use_network)
    primordial() = make(team, places, 0, std::move(taken));
  return primordial() != nullptr;
}

void keep_team_collectives(bool all_can) {
  if (all_can)
    keep(*the_client()->team, std::move(primordial()));
  else
    primordial().reset();
}

}  // namespace lintel::gasnet

/* team_collectives.h: small collectives of a team, in the order of their calls. Message path.
 *
 * Neighbours first combine in shared memory (node_stage.h). The first of them, the leader, takes
 * part for its neighbours in the chain between the nodes (network_stage.h). The last operations of
 * the chain put the result into the shared memory. The last process of a node to arrive starts the
 * chain, so no process waits to start one.
 *
 * Call n has slot n modulo kSlots. The last call of each half of the slots is a barrier or a
 * reduction to all. Other calls do not take that place: the leaders insert a barrier there. It
 * starts when only a few calls before it are not done. So when it is over, all leaders are done
 * with the calls before those, and their slots are used again. Calls without a free slot wait until
 * polls or tests start them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_COLL_TEAM_COLLECTIVES_H
#define LINTEL_GASNET_COLL_TEAM_COLLECTIVES_H

#include <deque>
#include <memory>
#include <optional>

#include "coll/message_tree.h"
#include "coll/network_stage.h"
#include "coll/node_memory.h"
#include "coll/node_stage.h"
#include "coll/places.h"
#include "job/mutex.h"
#include "team/team.h"

namespace lintel::gasnet {

class TeamCollectives {
 public:
  /** @param memory  taken by the leader for the members of its place; NULL if it is alone.
   * @param taken   by this process. */
  TeamCollectives(gasneti_team& team, TeamPlaces places, void* memory, NodeMemoryOfTeam taken);
  /** @return false if Portals has not enough counters or entries. */
  bool prepare();

  /** Whether this class handles calls of this kind. The result is the same in all members. */
  bool accepts(const CollectiveRequest& request) const;
  /** @param event  signalled when the part of this process is done. */
  void start(const CollectiveRequest& request, gasneti_event& event);
  /** Whether all calls are over, also those of the leaders, and no neighbour reads the memory of
   * this process any more. It takes polls here and in the neighbours to become true. */
  bool is_over();
  /** Never waits. @return how many calls are done. */
  unsigned int advance();
  const TeamPlaces& places() const { return places_; }
  bool has_calls() const { return calls_count_.load(std::memory_order_relaxed) != 0; }
  /** Whether any team has calls. */
  static bool are_calls_open();

 private:
  struct Call {
    uint32_t number = 0;
    CollectiveRequest request;
    gasneti_event* event = nullptr; /* NULL: a barrier that the leaders have inserted */
    bool is_started = false;
    bool is_done = false;
    /* Conditions that the call waits for. */
    bool awaits_release = false;
    bool awaits_contributions = false; /* contributions of all members */
    uint32_t shown = 0;                /* number of members that have contributed */
    std::optional<Awaited> awaited;
    const char* result = nullptr; /* copied to the destination, unless NULL */
  };

  static bool look(void* self);
  static std::optional<AwaitedCount> awaited(void* self, const gasneti_event& event);
  unsigned int advance_locked() LINTEL_GASNET_REQUIRES(mutex_);
  void count_calls() LINTEL_GASNET_REQUIRES(mutex_);
  void add_call(const CollectiveRequest& request, gasneti_event* event)
      LINTEL_GASNET_REQUIRES(mutex_);
  /** Puts it at the next number. Other members only count it. */
  void add_barrier_of_leaders() LINTEL_GASNET_REQUIRES(mutex_);
  /** Whether its end shows this leader that slots are free. */
  bool counts_halves(const Call& call) const;
  bool awaits_earlier_calls(const Call& call) const LINTEL_GASNET_REQUIRES(mutex_);
  bool has_free_slot(const Call& call) LINTEL_GASNET_REQUIRES(mutex_);
  void start_call(Call& call) LINTEL_GASNET_REQUIRES(mutex_);
  void start_broadcast(Call& call) LINTEL_GASNET_REQUIRES(mutex_);
  void start_reduction(Call& call) LINTEL_GASNET_REQUIRES(mutex_);
  void start_between_nodes(Call& call, const Schedule& schedule, Awaited own)
      LINTEL_GASNET_REQUIRES(mutex_);
  void await_release(Call& call, bool wants_result) LINTEL_GASNET_REQUIRES(mutex_);
  bool is_over(Call& call) LINTEL_GASNET_REQUIRES(mutex_);
  bool have_all_contributed(Call& call) const LINTEL_GASNET_REQUIRES(mutex_);
  void combine_contributions(const Call& call) const LINTEL_GASNET_REQUIRES(mutex_);
  void finish(Call& call) LINTEL_GASNET_REQUIRES(mutex_);
  static unsigned int slot_of(const Call& call) { return call.number % kSlots; }
  static uint32_t use_of(const Call& call) { return call.number / kSlots + 1; }

  gasneti_team& team_;
  TeamPlaces places_;
  const NodeMemoryOfTeam taken_;
  std::unique_ptr<char[]> own_memory_;
  Mutex mutex_;
  NodeStage node_ LINTEL_GASNET_GUARDED_BY(mutex_);
  std::unique_ptr<NetworkStage> network_ LINTEL_GASNET_GUARDED_BY(mutex_)
      LINTEL_GASNET_PT_GUARDED_BY(mutex_);
  std::deque<Call> calls_ LINTEL_GASNET_GUARDED_BY(mutex_);
  std::atomic<size_t> calls_count_{0};
  uint32_t next_number_ LINTEL_GASNET_GUARDED_BY(mutex_) = 0;
  uint32_t halves_over_ LINTEL_GASNET_GUARDED_BY(mutex_) = 0;
};

/** Sets up the small collectives of a team if all members are able to. Collective. */
void set_up_collectives(gasneti_team& team);
/** To be called before the team is deleted. Polls until no other member needs this process for a
 * call of the team: a neighbour may not have seen the end of a call that is over here. */
void end_collectives(gasneti_team& team);

/** Set-up path. Called for the team of all processes, which meet afterwards.
 * @return whether this process is able to take part. */
bool start_team_collectives();
/** To be called with the result of all processes. */
void keep_team_collectives(bool all_can);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_COLL_TEAM_COLLECTIVES_H

/* barrier.h: barriers of teams, by dissemination. Message path.
 *
 * In round k each member sends to the one that is 2^k above, and waits for the one that is 2^k
 * below. What the members say of the barrier's name travels along, so that all know the same in
 * the end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_COLL_BARRIER_H
#define LINTEL_GASNET_COLL_BARRIER_H

#include <mutex>
#include <vector>

#include "rma/event.h"
#include "team/team.h"
#include "tools/headers.h"

namespace lintel::gasnet {

/** What members say of the name of a barrier. They are joined in any order, and any number of
 * times. */
struct Agreement {
  enum class State : uint8_t { kAnonymous, kNamed, kMismatch };
  State state = State::kAnonymous;
  int32_t id = 0; /* if it is named */

  void join(const Agreement& other) {
    if (other.state == State::kAnonymous || state == State::kMismatch) return;
    if (state == State::kAnonymous)
      *this = other;
    else if (other.state == State::kMismatch || other.id != id)
      state = State::kMismatch;
  }
};

/** Calls of a team are numbered for each kind. */
enum class BarrierKind : uint8_t { kEx, kNamed };

class Barriers {
 public:
  /** @param event  signalled when all members have come. */
  void start(gasneti_team& team, BarrierKind kind, uint32_t call, const Agreement& mine,
             gasneti_event& event);
  /** What all members have said, once the event is complete. Called once. */
  Agreement finish(const gasneti_team& team, BarrierKind kind, uint32_t call);

  /** A message of a member. In a handler. */
  void arrived(uint32_t team, BarrierKind kind, uint32_t call, unsigned int round,
               const Agreement& theirs);
  /** Sends what can be sent. Never waits. @return how much was done. */
  unsigned int advance();

 private:
  struct Call {
    uint32_t team_number;
    BarrierKind kind;
    uint32_t number;
    uint32_t rounds_arrived = 0; /* bit k: round k */
    Agreement agreement;
    /* Once this process takes part. */
    gasneti_team* team = nullptr;
    gasneti_event* event = nullptr;
    unsigned int rounds_sent = 0;
  };

  Call& find(uint32_t team, BarrierKind kind, uint32_t number);
  bool advance(Call& call);

  std::mutex mutex_;
  std::vector<Call> calls_;      /* those that are not over; few */
  std::atomic<size_t> count_{0}; /* of calls_, to be read without the lock */
};

Barriers& barriers();

/** Set-up path. */
void start_barriers();

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_COLL_BARRIER_H

/* schedule.h: who sends to whom in a collective call of the nodes of a team. Message path.
 *
 * All members compute their steps from their place and the number of places. What is sent in step
 * k arrives at level k + 1 of the receiver, and each level receives from one place only, so a
 * value is always the combination of two. That fixes the order of floating-point sums.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_COLL_SCHEDULE_H
#define LINTEL_GASNET_COLL_SCHEDULE_H

#include <cstdint>

namespace lintel::gasnet {

constexpr uint32_t kNoPlace = ~uint32_t{0};
constexpr unsigned int kMaximumSteps = 34;

struct Step {
  uint32_t to = kNoPlace;
  uint32_t from = kNoPlace;
  bool replaces = false; /* what arrives takes the place of the own value */
};

struct Schedule {
  unsigned int steps = 0;
  Step step[kMaximumSteps];
};

/** Steps of the longest schedule. */
unsigned int most_steps(uint32_t places);

/** In step k each place sends to the one that is 2^k above: for barriers, and for operations that
 * may see a contribution twice. */
Schedule dissemination(uint32_t place, uint32_t places);
/** In each step pairs of places exchange. The places above the largest power of two give their
 * values to others first, and get the result last. */
Schedule exchange_of_pairs(uint32_t place, uint32_t places);
/** For all to have the result, with the fewest messages.
 * @param is_idempotent  the operation may see a contribution twice. */
Schedule for_all(uint32_t place, uint32_t places, bool is_idempotent);
/** A binomial tree, from the leaves to the root. */
Schedule to_root(uint32_t place, uint32_t places, uint32_t root);
/** The same tree, from the root to the leaves. */
Schedule from_root(uint32_t place, uint32_t places, uint32_t root);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_COLL_SCHEDULE_H

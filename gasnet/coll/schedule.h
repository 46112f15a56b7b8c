/* schedule.h: which node sends to which in a collective call of a team. Message path.
 *
 * Each member computes its steps from its place and the number of places. What is sent in step k
 * arrives at level k + 1 of the receiver. Each level receives from one place only, so each value is
 * the combination of two values. That fixes the order of floating-point sums.
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
  bool replaces = false; /* the value that arrives replaces the own value */
};

struct Schedule {
  unsigned int steps = 0;
  Step step[kMaximumSteps];

  /** Whether the result is sent nowhere. */
  bool ends_with_arrival() const { return steps != 0 && step[steps - 1].from != kNoPlace; }
};

/** Number of steps of the longest schedule. */
unsigned int most_steps(uint32_t places);

/** A schedule in which each place sends to the one that is 2^k above, in step k. For barriers, and
 * for operations that may include a contribution twice. */
Schedule dissemination(uint32_t place, uint32_t places);
/** The paired places exchange values in pairs in each step. Their number is a power of two. The
 * other places send their values to these first, and get the result last.
 * @param most_paired  the most paired places, at least 1. With two steps at most for the other
 *                     places, at least a quarter of all places is paired even so. */
Schedule exchange_of_pairs(uint32_t place, uint32_t places, uint32_t most_paired);
/** A schedule in which all places get the result, in the shortest time.
 * @param is_idempotent  the operation may include a contribution twice.
 * @param most_at_once   places that can run at the same time. If there are more, the total of the
 *                       messages counts, and not the number of steps. */
Schedule for_all(uint32_t place, uint32_t places, bool is_idempotent, uint32_t most_at_once);
/** A binomial tree, from the leaves to the root. */
Schedule to_root(uint32_t place, uint32_t places, uint32_t root);
/** The same tree, from the root to the leaves. */
Schedule from_root(uint32_t place, uint32_t places, uint32_t root);

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_COLL_SCHEDULE_H

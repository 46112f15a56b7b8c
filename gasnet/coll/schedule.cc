/* schedule.cc: dissemination, pairs, trees. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll/schedule.h"

#include <algorithm>
#include <bit>

namespace lintel::gasnet {
namespace {

/* Steps in which places above a power of two send their values to those below. */
constexpr unsigned int kMostFolds = 2;

/** The lowest k for which 2^k is at least `places`. */
unsigned int rounds_of(uint32_t places) {
  return static_cast<unsigned int>(std::bit_width(places - 1));
}

uint32_t shifted(uint32_t place, uint64_t by, uint32_t places) {
  return static_cast<uint32_t>((place + by) % places);
}

}  // namespace

unsigned int most_steps(uint32_t places) { return rounds_of(places) + kMostFolds; }

Schedule dissemination(uint32_t place, uint32_t places) {
  Schedule schedule;
  schedule.steps = rounds_of(places);
  for (unsigned int k = 0; k < schedule.steps; ++k) {
    const uint64_t distance = uint64_t{1} << k;
    schedule.step[k] = {shifted(place, distance, places),
                        shifted(place, places - distance, places)};
  }
  return schedule;
}

Schedule exchange_of_pairs(uint32_t place, uint32_t places, uint32_t most_paired) {
  Schedule schedule;
  const unsigned int all_rounds = rounds_of(places);
  const uint32_t most = std::min(places, most_paired);
  const unsigned int folds =
      std::min(all_rounds + 1 - static_cast<unsigned int>(std::bit_width(most)), kMostFolds);
  const unsigned int rounds = all_rounds - folds;
  schedule.steps = folds + rounds + folds;
  for (unsigned int fold = 0; fold < folds; ++fold) {
    Step& first = schedule.step[folds - 1 - fold];
    Step& last = schedule.step[folds + rounds + fold];
    const uint64_t below = uint64_t{1} << (rounds + fold);
    if (place < below && place + below < places)
      first.from = last.to = static_cast<uint32_t>(place + below);
    else if (place >= below && place < 2 * below)
      first.to = last.from = static_cast<uint32_t>(place - below);
    last.replaces = last.from != kNoPlace;
  }
  for (unsigned int k = 0; k < rounds && place < uint64_t{1} << rounds; ++k) {
    const uint32_t partner = place ^ (uint32_t{1} << k);
    schedule.step[folds + k] = {partner, partner};
  }
  return schedule;
}

Schedule for_all(uint32_t place, uint32_t places, bool is_idempotent, uint32_t most_at_once) {
  // The order of other operations does not depend on the number of processors.
  if (is_idempotent && places > most_at_once) return exchange_of_pairs(place, places, most_at_once);
  // Acknowledgements between pairs travel with the answers. Other acknowledgements are messages.
  return is_idempotent && !std::has_single_bit(places) ? dissemination(place, places)
                                                       : exchange_of_pairs(place, places, places);
}

Schedule to_root(uint32_t place, uint32_t places, uint32_t root) {
  Schedule schedule;
  const uint32_t virtual_place = shifted(place, places - root, places);
  const unsigned int rounds = rounds_of(places);
  for (unsigned int k = 0; k < rounds; ++k) {
    const uint64_t distance = uint64_t{1} << k;
    Step& step = schedule.step[schedule.steps++];
    if (virtual_place & distance) {
      step.to = shifted(place, places - distance, places);
      break;
    }
    if (virtual_place + distance < places) step.from = shifted(place, distance, places);
  }
  return schedule;
}

Schedule from_root(uint32_t place, uint32_t places, uint32_t root) {
  Schedule schedule;
  const uint32_t virtual_place = shifted(place, places - root, places);
  const unsigned int rounds = rounds_of(places);
  schedule.steps = rounds;
  for (unsigned int k = 0; k < rounds; ++k) {
    const uint64_t distance = uint64_t{1} << (rounds - 1 - k);
    const uint64_t below = virtual_place & (2 * distance - 1);
    if (below == 0 && virtual_place + distance < places)
      schedule.step[k].to = shifted(place, distance, places);
    else if (below == distance)
      schedule.step[k] = {kNoPlace, shifted(place, places - distance, places), true};
  }
  return schedule;
}

}  // namespace lintel::gasnet

/* schedule.cc: dissemination, pairs, trees. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll/schedule.h"

#include <bit>

namespace lintel::gasnet {
namespace {

/** The lowest k for which 2^k is at least `places`. */
unsigned int rounds_of(uint32_t places) {
  return static_cast<unsigned int>(std::bit_width(places - 1));
}

uint32_t shifted(uint32_t place, uint64_t by, uint32_t places) {
  return static_cast<uint32_t>((place + by) % places);
}

}  // namespace

unsigned int most_steps(uint32_t places) { return rounds_of(places) + 2; }

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

Schedule exchange_of_pairs(uint32_t place, uint32_t places) {
  Schedule schedule;
  const uint32_t paired = std::bit_floor(places);
  const unsigned int rounds = rounds_of(paired);
  const bool has_extra = paired != places;
  schedule.steps = rounds + (has_extra ? 2 : 0);
  const unsigned int first = has_extra ? 1 : 0;
  if (place >= paired) {
    schedule.step[0].to = place - paired;
    schedule.step[schedule.steps - 1] = {kNoPlace, place - paired, true};
    return schedule;
  }
  for (unsigned int k = 0; k < rounds; ++k) {
    const uint32_t partner = place ^ (uint32_t{1} << k);
    schedule.step[first + k] = {partner, partner};
  }
  if (has_extra && place + paired < places) {
    schedule.step[0].from = place + paired;
    schedule.step[schedule.steps - 1].to = place + paired;
  }
  return schedule;
}

Schedule for_all(uint32_t place, uint32_t places, bool is_idempotent) {
  // Acknowledgements between pairs travel with the answers. Other acknowledgements are messages.
  return is_idempotent && !std::has_single_bit(places) ? dissemination(place, places)
                                                       : exchange_of_pairs(place, places);
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

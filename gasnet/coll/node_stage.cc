/* node_stage.cc: which slots are free. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll/node_stage.h"

namespace lintel::gasnet {

bool NodeStage::have_finished(uint32_t calls) {
  // Numbers of calls wrap around.
  const auto lacks = [](uint32_t finished, uint32_t wanted) {
    return static_cast<int32_t>(finished - wanted) < 0;
  };
  if (!lacks(finished_by_all_, calls)) return true;
  uint32_t least = of_member(0).finished.load(std::memory_order_acquire);
  for (uint32_t member = 1; member < members_; ++member) {
    const uint32_t finished = of_member(member).finished.load(std::memory_order_acquire);
    if (lacks(finished, least)) least = finished;
  }
  gasneti_assert(!lacks(least, finished_by_all_));
  finished_by_all_ = least;
  return !lacks(least, calls);
}

}  // namespace lintel::gasnet

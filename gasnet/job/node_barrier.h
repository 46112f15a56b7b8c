/* node_barrier.h: a barrier in shared memory. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_JOB_NODE_BARRIER_H
#define LINTEL_GASNET_JOB_NODE_BARRIER_H

#include <atomic>
#include <cstdint>

#include "job/futex.h"

namespace lintel::gasnet {

/** Returns when it has been called in all members. May be called again at once. Many members may
 * share few processors: those that wait sleep.
 * @param arrived     members that have arrived, 0 at first.
 * @param generation  a futex; changes when all have arrived. */
inline void await_members(std::atomic<uint32_t>& arrived, std::atomic<uint32_t>& generation,
                          uint32_t members) {
  // The last change is known: the previous call returned after it.
  const uint32_t current = generation.load(std::memory_order_relaxed);
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == members) {
    arrived.store(0, std::memory_order_relaxed);
    generation.store(current + 1, std::memory_order_release);
    futex_wake_all(generation);
    return;
  }
  while (generation.load(std::memory_order_acquire) == current)
    futex_wait(generation, current, 1000);
}

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_JOB_NODE_BARRIER_H

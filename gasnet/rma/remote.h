/* remote.h: the memory of the peer of a transfer, and which event counts it. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_RMA_REMOTE_H
#define LINTEL_GASNET_RMA_REMOTE_H

#include "network/network.h"
#include "rma/event.h"
#include "team/team.h"

namespace lintel::gasnet {

/** The place of a range. A range outside of the segment ends the program. */
Place place_in_segment(const char* call, const EndpointName& name, const void* address,
                       size_t bytes);

/** Whether local addresses of transfers with this pair are those of a device: the processor must
 * not access them. */
bool has_device_memory(gex_TM_t tm);

/** @return where a range of a rank is mapped in this process; NULL if it is not. For teams and
 * pairs. */
void* mapped_range(gex_TM_t tm, gex_Rank_t rank, void* address, size_t bytes);

/** Whether PtlPut has read a source of this size when it returns. */
inline bool is_copied_at_once(size_t bytes) {
  return bytes <= network().limits().max_volatile_size;
}

/** The event that counts an implicit operation. */
inline gasneti_event& implicit(ThreadEvents& events, gasneti_event*& kind) {
  gasneti_event*& event = events.region ? events.region : kind;
  if (!event) event = &events.pool.take_always();
  return *event;
}

/** Starts a transfer with an event of its own. If no event is free because the client holds too
 * many, the transfer is complete on return and the result is NULL. */
template <typename Start>
gasneti_event* start_explicit(gasneti_event* ThreadEvents::*kind, Start&& start) {
  ThreadEvents& events = this_threads_events();
  if (gasneti_event* const event = events.pool.take()) {
    start(*event);
    return event;
  }
  gasneti_event& spare = implicit(events, events.*kind);
  start(spare);
  wait_for(spare);
  return nullptr;
}

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_RMA_REMOTE_H

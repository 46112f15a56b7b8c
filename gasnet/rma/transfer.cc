/* transfer.cc: puts and gets to ranks that are no neighbours. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <cstring>

#include "job/neighbourhood.h"
#include "job/thread.h"
#include "rma/event.h"
#include "rma/remote.h"
#include "team/team.h"
#include "trace/trace.h"

namespace lintel::gasnet {
namespace {

/** The memory of the peer of a transfer. */
struct Remote {
  Place place;
  void* local; /* address if it is mapped here: nothing is sent then; or NULL */
};

/** The inline functions have checked teams for mapped memory. A pair can name such memory, too. */
Remote remote(const char* call, gex_TM_t tm, gex_Rank_t rank, void* address, size_t bytes) {
  check_may_communicate(call);
  LINTEL_GASNET_TRACE_TRANSFER(call[sizeof "gex_RMA_" - 1], endpoint_of(tm, rank).jobrank,
                               "%s: %zu bytes at %p, rank %u", call, bytes, address, rank);
  gex_EP_Index_t device = 0;
  if (GASNETI_IS_PAIR(tm)) {
    void* const local = mapped_range(tm, rank, address, bytes);
    if (local) return {{}, local};
    if (has_device_memory(tm)) device = local_index_of(tm);
  }
  Place place = place_in_segment(call, endpoint_of(tm, rank), address, bytes);
  place.local = device;
  return {place, nullptr};
}

const void* bytes_of(const gex_RMA_Value_t& value, size_t nbytes) {
#ifdef PLATFORM_ARCH_LITTLE_ENDIAN
  (void)nbytes;
  return &value;
#else
  return reinterpret_cast<const char*>(&value) + (sizeof value - nbytes);
#endif
}

}  // namespace
}  // namespace lintel::gasnet

using namespace lintel::gasnet;

#ifdef GASNET_DEBUG
void gasneti_rma_check(gex_TM_t tm, gex_Rank_t rank, gex_Flags_t flags) {
  check_may_communicate("A put or get");
  if (!(flags & (GEX_FLAG_PEER_NEVER_SELF | GEX_FLAG_PEER_NEVER_NBRHD))) return;
  const gex_Rank_t peer = endpoint_of(tm, rank).jobrank;
  const Neighbourhood& near = neighbourhood();
  if (peer == gex_System_QueryJobRank())
    gasnett_fatalerror_nopos("A put or get to this process has a flag GEX_FLAG_PEER_NEVER_...");
  if ((flags & GEX_FLAG_PEER_NEVER_NBRHD) &&
      near.number_of(peer) == near.number_of(gex_System_QueryJobRank()))
    gasnett_fatalerror_nopos("A put or get to rank %u, a neighbour, has GEX_FLAG_PEER_NEVER_NBRHD",
                             peer);
}
#endif

int gasneti_rma_put_blocking(gex_TM_t tm, gex_Rank_t rank, void* dest, const void* src,
                             size_t nbytes, gex_Flags_t flags) {
  const gex_Event_t event = gasneti_rma_put_nb(tm, rank, dest, src, nbytes, GEX_EVENT_DEFER, flags);
  gex_Event_Wait(event);
  return 0;
}

int gasneti_rma_put_nbi(gex_TM_t tm, gex_Rank_t rank, void* dest, const void* src, size_t nbytes,
                        gex_Event_t* lc_opt, gex_Flags_t /*flags*/) {
  const Remote to = remote("gex_RMA_Put", tm, rank, dest, nbytes);
  if (to.local) {
    std::memcpy(to.local, src, nbytes);
    return 0;
  }
  ThreadEvents& events = this_threads_events();
  const bool is_grouped = lc_opt == GEX_EVENT_GROUP && !is_copied_at_once(nbytes);
  gasneti_event& event = implicit(events, is_grouped ? events.group_puts : events.puts);
  event.put(to.place, src, nbytes);
  if (lc_opt == GEX_EVENT_NOW && !is_copied_at_once(nbytes)) wait_for(event);
  return 0;
}

gex_Event_t gasneti_rma_put_nb(gex_TM_t tm, gex_Rank_t rank, void* dest, const void* src,
                               size_t nbytes, gex_Event_t* lc_opt, gex_Flags_t /*flags*/) {
  const Remote to = remote("gex_RMA_Put", tm, rank, dest, nbytes);
  gasneti_rma_leaf_done(lc_opt);
  if (to.local) {
    std::memcpy(to.local, src, nbytes);
    return GEX_EVENT_INVALID;
  }
  if (nbytes == 0) return GEX_EVENT_INVALID;
  gasneti_event* const event =
      start_explicit(&ThreadEvents::puts, [&](gasneti_event& e) { e.put(to.place, src, nbytes); });
  if (!event || is_copied_at_once(nbytes)) return event;
  if (lc_opt == GEX_EVENT_NOW) {
    wait_for(*event);
    EventPool::release(*event, this_threads_events().pool);
    return GEX_EVENT_INVALID;
  }
  if (lc_opt != GEX_EVENT_DEFER) *lc_opt = gex_Event_QueryLeaf(event, GEX_EC_LC);
  return event;
}

int gasneti_rma_get_blocking(gex_TM_t tm, void* dest, gex_Rank_t rank, void* src, size_t nbytes,
                             gex_Flags_t flags) {
  gex_Event_Wait(gasneti_rma_get_nb(tm, dest, rank, src, nbytes, flags));
  return 0;
}

int gasneti_rma_get_nbi(gex_TM_t tm, void* dest, gex_Rank_t rank, void* src, size_t nbytes,
                        gex_Flags_t /*flags*/) {
  const Remote from = remote("gex_RMA_Get", tm, rank, src, nbytes);
  if (from.local) {
    std::memcpy(dest, from.local, nbytes);
    return 0;
  }
  ThreadEvents& events = this_threads_events();
  implicit(events, events.gets).get(from.place, dest, nbytes);
  return 0;
}

gex_Event_t gasneti_rma_get_nb(gex_TM_t tm, void* dest, gex_Rank_t rank, void* src, size_t nbytes,
                               gex_Flags_t /*flags*/) {
  const Remote from = remote("gex_RMA_Get", tm, rank, src, nbytes);
  if (from.local) {
    std::memcpy(dest, from.local, nbytes);
    return GEX_EVENT_INVALID;
  }
  if (nbytes == 0) return GEX_EVENT_INVALID;
  return start_explicit(&ThreadEvents::gets,
                        [&](gasneti_event& e) { e.get(from.place, dest, nbytes); });
}

/* Values are at most 8 bytes, which PtlPut copies. */

gex_RMA_Value_t gasneti_rma_get_value(gex_TM_t tm, gex_Rank_t rank, void* src, size_t nbytes,
                                      gex_Flags_t flags) {
  gex_RMA_Value_t value = 0;
  gasneti_rma_get_blocking(tm, const_cast<void*>(bytes_of(value, nbytes)), rank, src, nbytes,
                           flags);
  return value;
}

int gasneti_rma_put_value_blocking(gex_TM_t tm, gex_Rank_t rank, void* dest, gex_RMA_Value_t value,
                                   size_t nbytes, gex_Flags_t flags) {
  return gasneti_rma_put_blocking(tm, rank, dest, bytes_of(value, nbytes), nbytes, flags);
}

int gasneti_rma_put_value_nbi(gex_TM_t tm, gex_Rank_t rank, void* dest, gex_RMA_Value_t value,
                              size_t nbytes, gex_Flags_t flags) {
  return gasneti_rma_put_nbi(tm, rank, dest, bytes_of(value, nbytes), nbytes, GEX_EVENT_NOW, flags);
}

gex_Event_t gasneti_rma_put_value_nb(gex_TM_t tm, gex_Rank_t rank, void* dest,
                                     gex_RMA_Value_t value, size_t nbytes, gex_Flags_t flags) {
  return gasneti_rma_put_nb(tm, rank, dest, bytes_of(value, nbytes), nbytes, GEX_EVENT_NOW, flags);
}

/* collective.cc: gex_Coll_Broadcast..., gex_Coll_Reduce.... Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll/collective.h"

#include "coll/team_collectives.h"
#include "job/thread.h"
#include "trace/trace.h"

namespace lintel::gasnet {
namespace {

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kReduceToOne:
      return "reduction to one";
    default:
      return "reduction to all";
  }
}

void check_call(const char* call, gex_TM_t tm, gex_Rank_t root, gex_Flags_t flags) {
  check_may_communicate(call);
  if (GASNETI_IS_PAIR(tm)) gasnett_fatalerror_nopos("%s: a pair is no team", call);
  if (flags != 0) gasnett_fatalerror_nopos("%s: flags 0x%x, must be 0", call, flags);
  if (root >= tm->view.size)
    gasnett_fatalerror_nopos("%s: root %u of %u ranks", call, root, tm->view.size);
}

}  // namespace

gasneti_event& start_collective(gasneti_team& team, const CollectiveRequest& request) {
  gasneti_event& event = take_signalled_event();
  const bool is_small = team.collectives && team.collectives->accepts(request);
  LINTEL_GASNET_TRACE(request.reduction.bytes() == 0 ? 'B' : 'X',
                      "%s of %zu bytes, team %u, rank %u of %u, root %u, by %s",
                      name_of(request.kind), request.reduction.bytes(), team.number, team.view.rank,
                      team.view.size, request.root, is_small ? "counters" : "messages");
  if (is_small)
    team.collectives->start(request, event);
  else
    message_trees().start(team, request, event);
  return event;
}

}  // namespace lintel::gasnet

using namespace lintel::gasnet;

gex_Event_t gex_Coll_BroadcastNB(gex_TM_t tm, gex_Rank_t root, void* dst, const void* src,
                                 size_t nbytes, gex_Flags_t flags) {
  check_call("gex_Coll_BroadcastNB", tm, root, flags);
  Reduction bytes;
  bytes.item_bytes = 1;
  bytes.count = nbytes;
  return &start_collective(*tm, {CollectiveKind::kBroadcast, root, dst, src, bytes});
}

gex_Event_t gex_Coll_ReduceToOneNB(gex_TM_t tm, gex_Rank_t root, void* dst, const void* src,
                                   gex_DT_t dt, size_t dt_sz, size_t dt_cnt, gex_OP_t op,
                                   gex_Coll_ReduceFn_t user_op, void* user_cdata,
                                   gex_Flags_t flags) {
  check_call("gex_Coll_ReduceToOneNB", tm, root, flags);
  const Reduction reduction{dt, op, dt_sz, dt_cnt, user_op, user_cdata};
  check_reduction("gex_Coll_ReduceToOneNB", reduction);
  return &start_collective(*tm, {CollectiveKind::kReduceToOne, root, dst, src, reduction});
}

gex_Event_t gex_Coll_ReduceToAllNB(gex_TM_t tm, void* dst, const void* src, gex_DT_t dt,
                                   size_t dt_sz, size_t dt_cnt, gex_OP_t op,
                                   gex_Coll_ReduceFn_t user_op, void* user_cdata,
                                   gex_Flags_t flags) {
  check_call("gex_Coll_ReduceToAllNB", tm, 0, flags);
  const Reduction reduction{dt, op, dt_sz, dt_cnt, user_op, user_cdata};
  check_reduction("gex_Coll_ReduceToAllNB", reduction);
  return &start_collective(*tm, {CollectiveKind::kReduceToAll, 0, dst, src, reduction});
}

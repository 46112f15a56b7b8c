/* barrier.cc: gex_Coll_Barrier... and the barriers of GASNet-1. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <climits>

#include "client/client.h"
#include "coll/collective.h"
#include "job/thread.h"
#include "network/poll.h"
#include "rma/event.h"

using namespace lintel::gasnet;

gex_Event_t gex_Coll_BarrierNB(gex_TM_t tm, gex_Flags_t flags) {
  check_may_communicate("gex_Coll_BarrierNB");
  if (flags != 0) gasnett_fatalerror_nopos("gex_Coll_BarrierNB: flags 0x%x, must be 0", flags);
  return &start_collective(*tm, {});
}

void gex_Coll_BarrierBlocking(gex_TM_t tm, gex_Flags_t flags) {
  gex_Event_Wait(gex_Coll_BarrierNB(tm, flags));
}

/* ----------------------------------------------------------------------------- named barriers */

namespace lintel::gasnet {
namespace {

/* Stands for no name. Its maximum with a name is the name. */
constexpr int64_t kAnonymous = INT64_MIN;
/* Is no name, and not the negative of a name. */
constexpr int64_t kMismatch = INT64_MAX;

Reduction largest_of_two() {
  Reduction reduction;
  reduction.count = 2;
  return reduction;
}

}  // namespace

NamedBarrier::Name NamedBarrier::name_of(int id, int flags) {
  if (flags & GASNET_BARRIERFLAG_MISMATCH) return {{kMismatch, kMismatch}};
  if (flags & GASNET_BARRIERFLAG_ANONYMOUS) return {{kAnonymous, kAnonymous}};
  return {{id, -int64_t{id}}};
}

void NamedBarrier::notify(const char* call, gasneti_team& team, int id, int flags) {
  check_may_communicate(call);
  if (event_) gasnett_fatalerror_nopos("%s: called a second time before wait", call);
  notified_ = name_of(id, flags);
  event_ = &start_collective(
      team, {CollectiveKind::kReduceToAll, 0, &result_, &notified_, largest_of_two()});
}

int NamedBarrier::finish(int id, int flags) {
  gex_Event_Wait(event_);
  event_ = nullptr;
  // The name in the wait of this rank must agree with those that all ranks have notified.
  const Name waited = name_of(id, flags);
  Name with_waited = result_;
  largest_of_two().combine(&waited, &with_waited, 2);
  if (with_waited.is_agreed()) return GASNET_OK;
  result_ = with_waited;
  return GASNET_ERR_BARRIER_MISMATCH;
}

int NamedBarrier::wait(const char* call, int id, int flags) {
  check_may_communicate(call);
  if (!event_) gasnett_fatalerror_nopos("%s: called without notify", call);
  return finish(id, flags);
}

int NamedBarrier::try_wait(const char* call, int id, int flags) {
  check_may_communicate(call);
  if (!event_) gasnett_fatalerror_nopos("%s: called without notify", call);
  poll();
  return event_->is_complete() ? finish(id, flags) : GASNET_ERR_NOT_READY;
}

int NamedBarrier::result(int* id) const {
  if (result_.bound[0] == kAnonymous || !result_.is_agreed()) return 1;
  *id = static_cast<int>(result_.bound[0]);
  return 0;
}

bool NamedBarrier::Name::is_agreed() const {
  return bound[0] != kMismatch && (bound[0] == kAnonymous || bound[0] == -bound[1]);
}

NamedBarrier& named_barrier_of(gasneti_team& team) {
  if (!team.named_barrier) team.named_barrier = new NamedBarrier;
  return *team.named_barrier;
}

}  // namespace lintel::gasnet

namespace {

NamedBarrier& own_barrier() { return named_barrier_of(*the_client()->team); }

}  // namespace

void gasnet_barrier_notify(int id, int flags) {
  own_barrier().notify("gasnet_barrier_notify", *the_client()->team, id, flags);
}

int gasnet_barrier_wait(int id, int flags) {
  return own_barrier().wait("gasnet_barrier_wait", id, flags);
}

int gasnet_barrier_try(int id, int flags) {
  return own_barrier().try_wait("gasnet_barrier_try", id, flags);
}

int gasnet_barrier(int id, int flags) {
  gasnet_barrier_notify(id, flags);
  return gasnet_barrier_wait(id, flags);
}

int gasnet_barrier_result(int* id) { return own_barrier().result(id); }

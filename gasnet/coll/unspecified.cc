/* unspecified.cc: gasnet_coll_..., the names of gasnet_coll.h that are not in the specification.
 * Message path.
 *
 * A call with GASNET_COLL_IN_ALLSYNC or _OUT_ALLSYNC has a barrier before or after it. It is
 * complete when it returns, also in its form with _nb: a barrier that started later could overtake
 * other collective calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <cstring>

#include "client/client.h"
#include "coll/collective.h"
#include "coll/pieces.h"
#include "job/thread.h"

using namespace lintel::gasnet;

namespace {

void check_flags(const char* call, int flags) {
  check_may_communicate(call);
  const int in = flags & (GASNET_COLL_IN_NOSYNC | GASNET_COLL_IN_MYSYNC | GASNET_COLL_IN_ALLSYNC);
  const int out =
      flags & (GASNET_COLL_OUT_NOSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_OUT_ALLSYNC);
  if (in == 0 || (in & (in - 1)) != 0 || out == 0 || (out & (out - 1)) != 0)
    gasnett_fatalerror_nopos("%s: flags 0x%x, must have one GASNET_COLL_IN_... and one ..._OUT_",
                             call, flags);
}

/** @param start  returns the event of the call. */
template <typename Start>
gasnet_coll_handle_t with_barriers(const char* call, gasnet_team_handle_t team, int flags,
                                   Start&& start) {
  check_flags(call, flags);
  if (flags & GASNET_COLL_IN_ALLSYNC) gex_Coll_BarrierBlocking(team, 0);
  const gex_Event_t event = start();
  if (!(flags & (GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC))) return event;
  gex_Event_Wait(event);
  if (flags & GASNET_COLL_OUT_ALLSYNC) gex_Coll_BarrierBlocking(team, 0);
  return GASNET_COLL_INVALID_HANDLE;
}

void copy_own(void* to, const void* from, size_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

/** Members that send and receive in a call: each sender has a piece for each receiver. */
struct Roles {
  bool sends;
  bool receives;
  bool to_all;              /* else to the root */
  bool from_all;            /* else from the root */
  bool has_piece_for_each;  /* the source */
  bool has_piece_from_each; /* the destination */
};

gex_Event_t start_pieces_of(gasneti_team& team, gex_Rank_t root, char* destination,
                            const char* source, size_t bytes, const Roles& roles) {
  const gex_Rank_t me = team.view.rank;
  const gex_Rank_t size = team.view.size;
  const auto outgoing_place = [&](gex_Rank_t to) {
    return source + (roles.has_piece_for_each ? to * bytes : 0);
  };
  const auto incoming_place = [&](gex_Rank_t from) {
    return destination + (roles.has_piece_from_each ? from * bytes : 0);
  };
  std::vector<OutgoingPiece> outgoing;
  std::vector<IncomingPiece> incoming;
  for (gex_Rank_t i = 1; i < size; ++i) {
    // Each rank begins with another peer.
    const auto peer = static_cast<gex_Rank_t>((uint64_t{me} + i) % size);
    if (roles.sends && (roles.to_all || peer == root))
      outgoing.push_back({peer, outgoing_place(peer)});
    if (roles.receives && (roles.from_all || peer == root))
      incoming.push_back({peer, incoming_place(peer)});
  }
  if (roles.sends && roles.receives) copy_own(incoming_place(me), outgoing_place(me), bytes);
  gasneti_event& event = take_signalled_event();
  piece_calls().start(team, team.pieces.fetch_add(1, std::memory_order_relaxed),
                      std::move(outgoing), std::move(incoming), bytes, event);
  return &event;
}

}  // namespace

gasnet_team_handle_t gasneti_team_all() { return the_client()->team; }

gasnet_coll_handle_t gasnet_coll_broadcast_nb(gasnet_team_handle_t team, void* dst,
                                              gasnet_image_t root, void* src, size_t nbytes,
                                              int flags) {
  return with_barriers("gasnet_coll_broadcast", team, flags,
                       [&] { return gex_Coll_BroadcastNB(team, root, dst, src, nbytes, 0); });
}

gasnet_coll_handle_t gasnet_coll_scatter_nb(gasnet_team_handle_t team, void* dst,
                                            gasnet_image_t root, void* src, size_t nbytes,
                                            int flags) {
  return with_barriers("gasnet_coll_scatter", team, flags, [&] {
    return start_pieces_of(*team, root, static_cast<char*>(dst), static_cast<const char*>(src),
                           nbytes, {team->view.rank == root, true, true, false, true, false});
  });
}

gasnet_coll_handle_t gasnet_coll_gather_nb(gasnet_team_handle_t team, gasnet_image_t root,
                                           void* dst, void* src, size_t nbytes, int flags) {
  return with_barriers("gasnet_coll_gather", team, flags, [&] {
    return start_pieces_of(*team, root, static_cast<char*>(dst), static_cast<const char*>(src),
                           nbytes, {true, team->view.rank == root, false, true, false, true});
  });
}

gasnet_coll_handle_t gasnet_coll_gather_all_nb(gasnet_team_handle_t team, void* dst, void* src,
                                               size_t nbytes, int flags) {
  return with_barriers("gasnet_coll_gather_all", team, flags, [&] {
    return start_pieces_of(*team, 0, static_cast<char*>(dst), static_cast<const char*>(src), nbytes,
                           {true, true, true, true, false, true});
  });
}

gasnet_coll_handle_t gasnet_coll_exchange_nb(gasnet_team_handle_t team, void* dst, void* src,
                                             size_t nbytes, int flags) {
  return with_barriers("gasnet_coll_exchange", team, flags, [&] {
    return start_pieces_of(*team, 0, static_cast<char*>(dst), static_cast<const char*>(src), nbytes,
                           {true, true, true, true, true, true});
  });
}

void gasnet_coll_broadcast(gasnet_team_handle_t team, void* dst, gasnet_image_t root, void* src,
                           size_t nbytes, int flags) {
  gex_Event_Wait(gasnet_coll_broadcast_nb(team, dst, root, src, nbytes, flags));
}
void gasnet_coll_scatter(gasnet_team_handle_t team, void* dst, gasnet_image_t root, void* src,
                         size_t nbytes, int flags) {
  gex_Event_Wait(gasnet_coll_scatter_nb(team, dst, root, src, nbytes, flags));
}
void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t root, void* dst, void* src,
                        size_t nbytes, int flags) {
  gex_Event_Wait(gasnet_coll_gather_nb(team, root, dst, src, nbytes, flags));
}
void gasnet_coll_gather_all(gasnet_team_handle_t team, void* dst, void* src, size_t nbytes,
                            int flags) {
  gex_Event_Wait(gasnet_coll_gather_all_nb(team, dst, src, nbytes, flags));
}
void gasnet_coll_exchange(gasnet_team_handle_t team, void* dst, void* src, size_t nbytes,
                          int flags) {
  gex_Event_Wait(gasnet_coll_exchange_nb(team, dst, src, nbytes, flags));
}

void gasnet_coll_wait_sync(gasnet_coll_handle_t handle) { gex_Event_Wait(handle); }
void gasnet_coll_wait_sync_some(gasnet_coll_handle_t* phandle, size_t count) {
  gex_Event_WaitSome(phandle, count, 0);
}
void gasnet_coll_wait_sync_all(gasnet_coll_handle_t* phandle, size_t count) {
  gex_Event_WaitAll(phandle, count, 0);
}
/* Unlike gex_Event_Test..., these poll, as they do in GASNet-1. */
int gasnet_coll_try_sync(gasnet_coll_handle_t handle) {
  gasnet_AMPoll();
  return gex_Event_Test(handle);
}
int gasnet_coll_try_sync_some(gasnet_coll_handle_t* phandle, size_t count) {
  gasnet_AMPoll();
  return gex_Event_TestSome(phandle, count, 0);
}
int gasnet_coll_try_sync_all(gasnet_coll_handle_t* phandle, size_t count) {
  gasnet_AMPoll();
  return gex_Event_TestAll(phandle, count, 0);
}

void gasnet_coll_barrier_notify(gasnet_team_handle_t team, int id, int flags) {
  named_barrier_of(*team).notify("gasnet_coll_barrier_notify", *team, id, flags);
}
int gasnet_coll_barrier_wait(gasnet_team_handle_t team, int id, int flags) {
  return named_barrier_of(*team).wait("gasnet_coll_barrier_wait", id, flags);
}
int gasnet_coll_barrier_try(gasnet_team_handle_t team, int id, int flags) {
  return named_barrier_of(*team).try_wait("gasnet_coll_barrier_try", id, flags);
}
int gasnet_coll_barrier(gasnet_team_handle_t team, int id, int flags) {
  gasnet_coll_barrier_notify(team, id, flags);
  return gasnet_coll_barrier_wait(team, id, flags);
}
int gasnet_coll_barrier_result(gasnet_team_handle_t team, int* id) {
  return named_barrier_of(*team).result(id);
}

/* There is nothing to tune. */
void gasnet_coll_dumpProfile(char* /*file*/, gasnet_team_handle_t /*team*/) {}
void gasnet_coll_dumpTuningState(char* /*file*/, gasnet_team_handle_t /*team*/) {}
void gasnet_coll_loadTuningState(char* /*file*/, gasnet_team_handle_t /*team*/) {}

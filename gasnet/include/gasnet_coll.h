/* gasnet_coll.h: collectives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_COLL_H
#define GASNET_COLL_H

#include <gasnetex.h>

GASNETT_BEGIN_EXTERNC

typedef void (*gex_Coll_ReduceFn_t)(const void* arg1, void* arg2_and_out, size_t count,
                                    const void* cdata);

extern gex_Event_t gex_Coll_BroadcastNB(gex_TM_t tm, gex_Rank_t root, void* dst, const void* src,
                                        size_t nbytes, gex_Flags_t flags);
extern gex_Event_t gex_Coll_ReduceToOneNB(gex_TM_t tm, gex_Rank_t root, void* dst, const void* src,
                                          gex_DT_t dt, size_t dt_sz, size_t dt_cnt, gex_OP_t op,
                                          gex_Coll_ReduceFn_t user_op, void* user_cdata,
                                          gex_Flags_t flags);
extern gex_Event_t gex_Coll_ReduceToAllNB(gex_TM_t tm, void* dst, const void* src, gex_DT_t dt,
                                          size_t dt_sz, size_t dt_cnt, gex_OP_t op,
                                          gex_Coll_ReduceFn_t user_op, void* user_cdata,
                                          gex_Flags_t flags);

/* ---------------------------------------------------------- names that are not in the
 * specification */

typedef gex_Event_t gasnet_coll_handle_t;
#define GASNET_COLL_INVALID_HANDLE GEX_EVENT_INVALID
typedef uint32_t gasnet_image_t;
typedef gex_TM_t gasnet_team_handle_t;
extern gasnet_team_handle_t gasneti_team_all(void);
#define GASNET_TEAM_ALL (gasneti_team_all())

#define GASNET_COLL_IN_NOSYNC 0x1
#define GASNET_COLL_IN_MYSYNC 0x2
#define GASNET_COLL_IN_ALLSYNC 0x4
#define GASNET_COLL_OUT_NOSYNC 0x8
#define GASNET_COLL_OUT_MYSYNC 0x10
#define GASNET_COLL_OUT_ALLSYNC 0x20
#define GASNET_COLL_SYNC_FLAG_MASK 0x3F
#define GASNET_COLL_LOCAL 0x80
#define GASNET_COLL_DST_IN_SEGMENT 0x400
#define GASNET_COLL_SRC_IN_SEGMENT 0x800

extern void gasnet_coll_broadcast(gasnet_team_handle_t team, void* dst, gasnet_image_t root,
                                  void* src, size_t nbytes, int flags);
extern void gasnet_coll_scatter(gasnet_team_handle_t team, void* dst, gasnet_image_t root,
                                void* src, size_t nbytes, int flags);
extern void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t root, void* dst, void* src,
                               size_t nbytes, int flags);
extern void gasnet_coll_gather_all(gasnet_team_handle_t team, void* dst, void* src, size_t nbytes,
                                   int flags);
extern void gasnet_coll_exchange(gasnet_team_handle_t team, void* dst, void* src, size_t nbytes,
                                 int flags);
extern gasnet_coll_handle_t gasnet_coll_broadcast_nb(gasnet_team_handle_t team, void* dst,
                                                     gasnet_image_t root, void* src, size_t nbytes,
                                                     int flags);
extern gasnet_coll_handle_t gasnet_coll_scatter_nb(gasnet_team_handle_t team, void* dst,
                                                   gasnet_image_t root, void* src, size_t nbytes,
                                                   int flags);
extern gasnet_coll_handle_t gasnet_coll_gather_nb(gasnet_team_handle_t team, gasnet_image_t root,
                                                  void* dst, void* src, size_t nbytes, int flags);
extern gasnet_coll_handle_t gasnet_coll_gather_all_nb(gasnet_team_handle_t team, void* dst,
                                                      void* src, size_t nbytes, int flags);
extern gasnet_coll_handle_t gasnet_coll_exchange_nb(gasnet_team_handle_t team, void* dst, void* src,
                                                    size_t nbytes, int flags);
extern void gasnet_coll_wait_sync(gasnet_coll_handle_t handle);
extern void gasnet_coll_wait_sync_some(gasnet_coll_handle_t* phandle, size_t count);
extern void gasnet_coll_wait_sync_all(gasnet_coll_handle_t* phandle, size_t count);
extern int gasnet_coll_try_sync(gasnet_coll_handle_t handle);
extern int gasnet_coll_try_sync_some(gasnet_coll_handle_t* phandle, size_t count);
extern int gasnet_coll_try_sync_all(gasnet_coll_handle_t* phandle, size_t count);
extern void gasnet_coll_barrier_notify(gasnet_team_handle_t team, int id, int flags);
extern int gasnet_coll_barrier_wait(gasnet_team_handle_t team, int id, int flags);
extern int gasnet_coll_barrier_try(gasnet_team_handle_t team, int id, int flags);
extern int gasnet_coll_barrier(gasnet_team_handle_t team, int id, int flags);
extern int gasnet_coll_barrier_result(gasnet_team_handle_t team, int* id);
extern void gasnet_coll_dumpProfile(char* file, gasnet_team_handle_t team);
extern void gasnet_coll_dumpTuningState(char* file, gasnet_team_handle_t team);
extern void gasnet_coll_loadTuningState(char* file, gasnet_team_handle_t team);

GASNETT_END_EXTERNC

#endif /* GASNET_COLL_H */

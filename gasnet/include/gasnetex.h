/* gasnetex.h: GASNet-EX over Portals 4. Link libgasnet-portals4-{seq,par,parsync}.
 *
 * The calls behave as the GASNet-EX specification 0.17 says. A comment here describes what this
 * library adds, or where the specification leaves a choice. The section "Calls from restricted
 * context" lists the calls that are legal in handlers and while a handler-safe lock is held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GASNETEX_H
#ifdef GASNET_TOOLS_H
#error "include gasnetex.h before gasnet_tools.h"
#endif
#define _GASNETEX_H 1

#ifndef GASNETI_INCLUDED_BY_HEADER
#define GASNETI_INCLUDED_BY_HEADER 1
#endif
#include <gasnet_config.h>

/* ----------------------------------------------------------------------------------------- mode */

#if (defined(GASNET_SEQ) + defined(GASNET_PAR) + defined(GASNET_PARSYNC)) != 1
#error "define exactly one of GASNET_SEQ, GASNET_PAR and GASNET_PARSYNC"
#endif
#if defined(GASNET_SEQ)
#undef GASNET_SEQ
#define GASNET_SEQ 1
#define GASNETI_MODE_STR "SEQ"
#define GASNETI_MODE_NAME seq
#elif defined(GASNET_PAR)
#undef GASNET_PAR
#define GASNET_PAR 1
#define GASNETI_MODE_STR "PAR"
#define GASNETI_MODE_NAME par
#else
#undef GASNET_PARSYNC
#define GASNET_PARSYNC 1
#define GASNETI_MODE_STR "PARSYNC"
#define GASNETI_MODE_NAME parsync
#endif

/* The library defines only the symbol of its own mode. So a program for another mode does not
 * link. */
#define GASNETI_LINK_NAME_HELPER(mode, debug) gasneti_link_portals4_##mode##_##debug
#define GASNETI_LINK_NAME_EXPAND(mode, debug) GASNETI_LINK_NAME_HELPER(mode, debug)
#ifdef GASNET_DEBUG
#define GASNETI_LINK_NAME GASNETI_LINK_NAME_EXPAND(GASNETI_MODE_NAME, debug)
#else
#define GASNETI_LINK_NAME GASNETI_LINK_NAME_EXPAND(GASNETI_MODE_NAME, ndebug)
#endif

#undef GASNET_CONDUIT_PORTALS4
#define GASNET_CONDUIT_PORTALS4 1
#define GASNET_CONDUIT_NAME PORTALS4
#define GASNET_CONDUIT_NAME_STR "PORTALS4"
#define GASNET_CORE_NAME PORTALS4
#define GASNET_CORE_NAME_STR "PORTALS4"
#define GASNET_EXTENDED_NAME PORTALS4
#define GASNET_EXTENDED_NAME_STR "PORTALS4"
#define GASNET_CORE_VERSION 1.0
#define GASNET_CORE_VERSION_STR "1.0"
#define GASNET_EXTENDED_VERSION 1.0
#define GASNET_EXTENDED_VERSION_STR "1.0"

/* A program that defines GASNET_SEGMENT_EVERYTHING has all memory of each process as its segment.
 * All processes of a job must be alike in this. */
#ifdef GASNET_SEGMENT_EVERYTHING
#undef GASNET_SEGMENT_EVERYTHING
#define GASNET_SEGMENT_EVERYTHING 1
#define GASNETI_SEGMENT_STR "EVERYTHING"
#else
#define GASNETI_SEGMENT_STR "FAST"
#endif

#define GASNET_PSHM 1
#define GASNET_TRACE 1
#define GASNET_STATS 1
#define GASNET_PAGESIZE GASNETI_PAGESIZE

#define GEX_SPEC_VERSION_MAJOR GASNETI_EX_SPEC_VERSION_MAJOR
#define GEX_SPEC_VERSION_MINOR GASNETI_EX_SPEC_VERSION_MINOR
#define GASNET_SPEC_VERSION_MAJOR GASNETI_SPEC_VERSION_MAJOR
#define GASNET_SPEC_VERSION_MINOR GASNETI_SPEC_VERSION_MINOR
#define GASNET_VERSION GASNET_SPEC_VERSION_MAJOR

#ifdef GASNET_SEQ
#define GASNETI_MAX_THREADS 1
#else
#define GASNETI_MAX_THREADS GASNETI_MAX_THREADS_CONFIGURE
#endif
#define GASNETT_MAX_THREADS GASNETI_MAX_THREADS
#define GASNET_MAXNODES 0x7FFFFFFFu
#define GASNET_MAXEPS 32
#define GASNET_ALIGNED_SEGMENTS 0
#define GASNET_NULL_ARGV_OK 1
#define GASNET_HIDDEN_AM_CONCURRENCY_LEVEL 0
#define GEX_AM_INDEX_BASE 128

#define GASNET_SUPPORTS_TI_SRCRANK 1
#define GASNET_SUPPORTS_TI_EP 1
#define GASNET_SUPPORTS_TI_ENTRY 1
#define GASNET_SUPPORTS_TI_IS_REQ 1
#define GASNET_SUPPORTS_TI_IS_LONG 1
#define GASNET_SUPPORTS_AM_COMMIT_V2 20240906L
#define GASNET_SUPPORTS_AM_CANCEL 20240418L
/* Messages are sent directly from the buffers of the library. */
#define GASNET_NATIVE_NP_ALLOC_REQ_MEDIUM 1
#define GASNET_NATIVE_NP_ALLOC_REP_MEDIUM 1
#define GASNET_NATIVE_NP_ALLOC_REQ_LONG 1
#define GASNET_NATIVE_NP_ALLOC_REP_LONG 1
#define GASNET_HAVE_MK_CLASS_HOST 1
/* Usable where there is a driver: gex_MK_Create. */
#define GASNET_HAVE_MK_CLASS_CUDA_UVA 1
#define GASNET_HAVE_MK_CLASS_HIP 1
#define GASNET_HAVE_MK_CLASS_ZE 1
#define GASNET_HAVE_MK_CLASS_MULTIPLE 1

#include <gasnet_fwd.h>
#include <portable_inttypes.h>

/* ---------------------------------------------------------------------------------------- types */

#ifdef __cplusplus
extern "C" {
#endif

struct gasneti_client;
struct gasneti_endpoint;
struct gasneti_segment;
struct gasneti_team;
struct gasneti_memory_kind;
struct gasneti_token;
struct gasneti_source_descriptor;
typedef struct gasneti_client* gex_Client_t;
typedef struct gasneti_endpoint* gex_EP_t;
typedef struct gasneti_segment* gex_Segment_t;
typedef struct gasneti_team* gex_TM_t;
typedef struct gasneti_memory_kind* gex_MK_t;
typedef struct gasneti_token* gex_Token_t;
typedef struct gasneti_source_descriptor* gex_AM_SrcDesc_t;
#define GEX_CLIENT_INVALID ((gex_Client_t)0)
#define GEX_EP_INVALID ((gex_EP_t)0)
#define GEX_SEGMENT_INVALID ((gex_Segment_t)0)
#define GEX_TM_INVALID ((gex_TM_t)0)
#define GEX_MK_INVALID ((gex_MK_t)0)
#define GEX_MK_HOST ((gex_MK_t)(uintptr_t)1)
#define GEX_AM_SRCDESC_NO_OP ((gex_AM_SrcDesc_t)0)

typedef unsigned int gex_EC_t;
#define GEX_EC_ALL ((gex_EC_t)~0u)
#define GEX_EC_GET ((gex_EC_t)1)
#define GEX_EC_PUT ((gex_EC_t)2)
#define GEX_EC_AM ((gex_EC_t)4)
#define GEX_EC_LC ((gex_EC_t)8)
#define GEX_EC_RMW ((gex_EC_t)16)

typedef unsigned int gex_TI_t;
#define GEX_TI_SRCRANK ((gex_TI_t)1 << 0)
#define GEX_TI_ENTRY ((gex_TI_t)1 << 1)
#define GEX_TI_IS_REQ ((gex_TI_t)1 << 2)
#define GEX_TI_IS_LONG ((gex_TI_t)1 << 3)
#define GEX_TI_EP ((gex_TI_t)1 << 4)
#define GEX_TI_ALL ((gex_TI_t)31)

typedef uint64_t gex_RMA_Value_t;
#define SIZEOF_GEX_RMA_VALUE_T 8

typedef uint8_t gex_AM_Index_t;
typedef int32_t gex_AM_Arg_t;
#if defined(__clang__) && !defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wstrict-prototypes"
#elif !defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif
typedef void (*gex_AM_Fn_t)();
#if defined(__clang__) && !defined(__cplusplus)
#pragma clang diagnostic pop
#elif !defined(__cplusplus)
#pragma GCC diagnostic pop
#endif

typedef struct {
  gex_AM_Index_t gex_index;
  gex_AM_Fn_t gex_fnptr;
  gex_Flags_t gex_flags;
  unsigned int gex_nargs;
  const void* gex_cdata;
  const char* gex_name;
} gex_AM_Entry_t;

typedef struct {
  gex_Rank_t gex_srcrank;
  gex_EP_t gex_ep;
  const gex_AM_Entry_t* gex_entry;
  int gex_is_req;
  int gex_is_long;
} gex_Token_Info_t;

typedef struct {
  void* gex_addr;
  size_t gex_len;
} gex_Memvec_t;

typedef const struct { gex_Rank_t gex_jobrank; } gex_RankInfo_t;

/* A thread that the library leaves to the client to start (GEX_FLAG_DEFER_THREADS). */
typedef struct {
  const char* gex_device_list;
  unsigned int gex_thread_roles;
  void* (*gex_progress_fn)(void*);
  void* gex_progress_arg;
} gex_ProgressThreadInfo_t;
#define GEX_THREAD_ROLE_RCV (1U << 0)
#define GEX_THREAD_ROLE_SND (1U << 1)

typedef struct {
  void* addr;
  uintptr_t size;
} gasnet_seginfo_t;
typedef struct {
  gex_Rank_t host;
  gex_Rank_t supernode;
  uintptr_t offset; /* added to an address in the segment of the rank; 0 without a mapping */
  int gasneti_is_mapped;
} gasnet_nodeinfo_t;
typedef void* gasnet_threadinfo_t;
typedef struct {
  void* addr;
  size_t len;
} gasnet_memvec_t;

/* Programs compare them in #if, so they have no cast. */
#define GEX_FLAG_PEER_NEVER_NBRHD (1U << 14)
#define GEX_FLAG_PEER_NEVER_SELF (1U << 15)

#ifdef __cplusplus
}
#endif

#include <gasnet_tools.h>

#define GASNET_CONFIG_STRING                                                                                                     \
  "RELEASE=" _STRINGIFY(GASNETI_RELEASE_VERSION) ",SPEC=" _STRINGIFY(GEX_SPEC_VERSION_MAJOR) "." _STRINGIFY(                     \
      GEX_SPEC_VERSION_MINOR) ",CONDUIT=" GASNET_CONDUIT_NAME_STR "(" GASNET_CORE_NAME_STR                                       \
                              "-" GASNET_CORE_VERSION_STR "/" GASNET_EXTENDED_NAME_STR                                           \
                              "-" GASNET_EXTENDED_VERSION_STR "),THREADMODEL=" GASNETI_MODE_STR                                  \
                              ",SEGMENT=" GASNETI_SEGMENT_STR                                                                    \
                              ",PTR=64bit,CACHE_LINE_BYTES=" _STRINGIFY(                                                         \
                                  GASNETI_CACHE_LINE_BYTES) ",noalign,pshm," GASNETI_DEBUG_CONFIG_STRING                         \
                                                            ",trace,stats,nodebugmalloc,nosrclines," GASNETI_TOOLS_CONFIG_STRING \
                                                            ",notiopt"

/* ---------------------------------------------------------------------------------------- codes */

#define GASNET_OK 0
#define GASNET_ERR_NOT_INIT 10001
#define GASNET_ERR_RESOURCE 10002
#define GASNET_ERR_BAD_ARG 10003
#define GASNET_ERR_NOT_READY 10004
#define GASNET_ERR_BARRIER_MISMATCH 10005

GASNETT_BEGIN_EXTERNC

/** Name and one-line description of a code. Never NULL; legal before gex_Client_Init. */
extern const char* gasnet_ErrorName(int errval);
extern const char* gasnet_ErrorDesc(int errval);

/* ---------------------------------------------------------------------------------- the process */

extern char* gasnet_getenv(const char* key);
extern gex_Rank_t gex_System_QueryJobRank(void);
extern gex_Rank_t gex_System_QueryJobSize(void);
#define gasneti_mynode (gex_System_QueryJobRank())

extern int gex_System_GetVerboseErrors(void);
extern void gex_System_SetVerboseErrors(int enable);
extern uint64_t gex_System_QueryMaxThreads(void);
extern int gex_System_QueryHiddenAMConcurrencyLevel(void);
extern void gex_System_QueryNbrhdInfo(gex_RankInfo_t** info_p, gex_Rank_t* info_count_p,
                                      gex_Rank_t* my_info_index_p);
extern void gex_System_QueryHostInfo(gex_RankInfo_t** info_p, gex_Rank_t* info_count_p,
                                     gex_Rank_t* my_info_index_p);
extern void gex_System_QueryMyPosition(gex_Rank_t* nbrhd_set_size_p, gex_Rank_t* nbrhd_set_rank_p,
                                       gex_Rank_t* host_set_size_p, gex_Rank_t* host_set_rank_p);
extern int gex_System_QueryProgressThreads(gex_Client_t client, unsigned int* count_p,
                                           const gex_ProgressThreadInfo_t** info_p,
                                           gex_Flags_t flags);

/** Ends the whole job. Legal in handlers, signal handlers, atexit handlers, and in any thread. */
extern void gasnet_exit(int exitcode) GASNETT_NORETURN;

extern uintptr_t gasnet_getMaxLocalSegmentSize(void);
extern uintptr_t gasnet_getMaxGlobalSegmentSize(void);
extern int gasnet_getSegmentInfo(gasnet_seginfo_t* table, int count);
extern int gasnet_getNodeInfo(gasnet_nodeinfo_t* table, int count);

#define GASNET_WAIT_SPIN 0
#define GASNET_WAIT_BLOCK 1
#define GASNET_WAIT_SPINBLOCK 2
extern int gasnet_set_waitmode(int wait_mode);

extern int gasnet_AMPoll(void);
/** Polls. If there was nothing to do, waits in the mode of gasnet_set_waitmode. */
extern void gasneti_poll_or_wait(void);
#define GASNET_BLOCKUNTIL(cond)             \
  do {                                      \
    while (!(cond)) gasneti_poll_or_wait(); \
    gasnett_local_rmb();                    \
  } while (0)

#define GASNET_BEGIN_FUNCTION() enum { gasneti_begin_function_used = 1 }
#define GASNET_POST_THREADINFO(info) \
  gasnet_threadinfo_t gasneti_threadinfo_posted __attribute__((unused)) = (info)
#define GASNET_GET_THREADINFO() ((gasnet_threadinfo_t)0)

/* --------------------------------------------------------------------------------------- client */

extern int gex_Client_Init(gex_Client_t* client_p, gex_EP_t* ep_p, gex_TM_t* tm_p,
                           const char* clientName, int* argc, char*** argv, gex_Flags_t flags);
#ifdef GASNET_SEGMENT_EVERYTHING
extern int gasneti_client_init_everything(gex_Client_t* client_p, gex_EP_t* ep_p, gex_TM_t* tm_p,
                                          const char* clientName, int* argc, char*** argv,
                                          gex_Flags_t flags);
#define gex_Client_Init gasneti_client_init_everything
#endif
extern gex_Flags_t gex_Client_QueryFlags(gex_Client_t client);
extern const char* gex_Client_QueryName(gex_Client_t client);
extern void gex_Client_SetCData(gex_Client_t client, const void* val);
extern void* gex_Client_QueryCData(gex_Client_t client);

/* ------------------------------------------------------------------------------------ endpoints */

extern int gex_EP_Create(gex_EP_t* ep_p, gex_Client_t client, gex_EP_Capabilities_t capabilities,
                         gex_Flags_t flags);
extern int gex_EP_BindSegment(gex_EP_t ep, gex_Segment_t segment, gex_Flags_t flags);
extern int gex_EP_PublishBoundSegment(gex_TM_t tm, gex_EP_t* eps, size_t num_eps,
                                      gex_Flags_t flags);
extern gex_Event_t gex_EP_QueryBoundSegmentNB(gex_TM_t tm, gex_Rank_t rank, void** owneraddr_p,
                                              void** localaddr_p, uintptr_t* size_p,
                                              gex_Flags_t flags);
extern int gex_EP_RegisterHandlers(gex_EP_t ep, gex_AM_Entry_t* table, size_t numentries);
extern gex_Client_t gex_EP_QueryClient(gex_EP_t ep);
extern gex_Flags_t gex_EP_QueryFlags(gex_EP_t ep);
extern gex_Segment_t gex_EP_QuerySegment(gex_EP_t ep);
extern gex_EP_Index_t gex_EP_QueryIndex(gex_EP_t ep);
extern void gex_EP_SetCData(gex_EP_t ep, const void* val);
extern void* gex_EP_QueryCData(gex_EP_t ep);

/* ------------------------------------------------------------------------------------- segments */

extern int gex_Segment_Attach(gex_Segment_t* segment_p, gex_TM_t tm, uintptr_t size);
extern int gex_Segment_Create(gex_Segment_t* segment_p, gex_Client_t client, gex_Addr_t address,
                              uintptr_t length, gex_MK_t kind, gex_Flags_t flags);
extern void gex_Segment_Destroy(gex_Segment_t segment, gex_Flags_t flags);
extern gex_Client_t gex_Segment_QueryClient(gex_Segment_t seg);
extern gex_Flags_t gex_Segment_QueryFlags(gex_Segment_t seg);
extern void* gex_Segment_QueryAddr(gex_Segment_t seg);
extern uintptr_t gex_Segment_QuerySize(gex_Segment_t seg);
extern void gex_Segment_SetCData(gex_Segment_t seg, const void* val);
extern void* gex_Segment_QueryCData(gex_Segment_t seg);
/** Deprecated: use gex_EP_QueryBoundSegmentNB. */
extern int gex_Segment_QueryBound(gex_TM_t tm, gex_Rank_t rank, void** owneraddr_p,
                                  void** localaddr_p, uintptr_t* size_p);

/* ---------------------------------------------------------------------------------------- teams */

extern size_t gex_TM_Split(gex_TM_t* new_tm_p, gex_TM_t parent_tm, int color, int key,
                           void* scratch_addr, size_t scratch_size, gex_Flags_t flags);
extern size_t gex_TM_Create(gex_TM_t* new_tms, size_t num_new_tms, gex_TM_t parent_tm,
                            gex_EP_Location_t* args, size_t numargs, gex_Addr_t* scratch_addrs,
                            size_t scratch_size, gex_Flags_t flags);
extern int gex_TM_Destroy(gex_TM_t tm, gex_Memvec_t* scratch_p, gex_Flags_t flags);
extern gex_Client_t gex_TM_QueryClient(gex_TM_t tm);
extern gex_EP_t gex_TM_QueryEP(gex_TM_t tm);
extern gex_Flags_t gex_TM_QueryFlags(gex_TM_t tm);
extern gex_Rank_t gex_TM_TranslateRankToJobrank(gex_TM_t tm, gex_Rank_t rank);
extern gex_Rank_t gex_TM_TranslateJobrankToRank(gex_TM_t tm, gex_Rank_t jobrank);
extern gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t tm, gex_Rank_t rank, gex_Flags_t flags);
extern void gex_TM_SetCData(gex_TM_t tm, const void* val);
extern void* gex_TM_QueryCData(gex_TM_t tm);

/* The part of a team that inline functions read: the beginning of the object behind a gex_TM_t. */
struct gasneti_team_view {
  gex_Rank_t rank;
  gex_Rank_t size;
  /* Offsets of `mapped_count` ranks, beginning with `mapped_first`. Adding an entry less 1 to an
   * address in the bound segment of the rank gives its address in this process. 0: the rank is no
   * neighbour, or has no segment. So pages without neighbours need no memory. */
  gex_Rank_t mapped_first;
  gex_Rank_t mapped_count;
  const intptr_t* mapped_offsets;
};

/* A pair of endpoints in the place of a team. Bit 0 is set. The index of the remote endpoint begins
 * at bit 1, that of the local one at bit 17. */
#define GASNETI_IS_PAIR(tm) (((uintptr_t)(tm)&1u) != 0)

GASNETT_INLINE(gasneti_view) const struct gasneti_team_view* gasneti_view(gex_TM_t tm) {
  return (const struct gasneti_team_view*)(const void*)tm;
}
GASNETT_INLINE(gex_TM_QueryRank) gex_Rank_t gex_TM_QueryRank(gex_TM_t tm) {
  return gasneti_view(tm)->rank;
}
GASNETT_INLINE(gex_TM_QuerySize) gex_Rank_t gex_TM_QuerySize(gex_TM_t tm) {
  return gasneti_view(tm)->size;
}
GASNETT_INLINE(gex_TM_Pair)
gex_TM_t gex_TM_Pair(gex_EP_t local_ep, gex_EP_Index_t remote_ep_index) {
  return (gex_TM_t)(((uintptr_t)gex_EP_QueryIndex(local_ep) << 17) |
                    ((uintptr_t)remote_ep_index << 1) | (uintptr_t)1);
}
/** The address in this process of an address in the bound segment of a rank; NULL if it is not
 * mapped. */
GASNETT_INLINE(gasneti_mapped_address)
void* gasneti_mapped_address(gex_TM_t tm, gex_Rank_t rank, void* address) {
  const struct gasneti_team_view* view = gasneti_view(tm);
  gex_Rank_t index;
  intptr_t offset;
  if (GASNETI_IS_PAIR(tm)) return (void*)0;
  index = rank - view->mapped_first;
  if (index >= view->mapped_count) return (void*)0;
  offset = view->mapped_offsets[index];
  return offset == 0 ? (void*)0 : (void*)((uintptr_t)address + (uintptr_t)offset - 1);
}

/* Bits as in gasneti_trace_categories, of the trace and of the statistics together. If it is not 0,
 * the inline functions report transfers to and from the memory of neighbours to the library. */
extern unsigned int gasneti_transfer_categories;
extern void gasneti_trace_near(char category, gex_TM_t tm, gex_Rank_t rank, const void* address,
                               size_t nbytes);
#define GASNETI_TRACES_TRANSFERS \
  GASNETT_PREDICT_FALSE(__atomic_load_n(&gasneti_transfer_categories, __ATOMIC_RELAXED) != 0)
#define GASNETI_TRACE_NEAR(category, mapped, tm, rank, address, nbytes) \
  do {                                                                  \
    if (GASNETI_TRACES_TRANSFERS && (mapped))                           \
      gasneti_trace_near(category, tm, rank, address, nbytes);          \
  } while (0)

/* --------------------------------------------------------------------------- handler-safe locks */

/* Handlers run in threads that poll, so locks are needed only if several threads may poll. */
typedef struct {
#ifdef GASNET_PAR
  gasnett_mutex_t gasneti_lock;
#else
  char gasneti_unused;
#endif
} gex_HSL_t;
#ifdef GASNET_PAR
#define GEX_HSL_INITIALIZER \
  { GASNETT_MUTEX_INITIALIZER }
#else
#define GEX_HSL_INITIALIZER \
  { 0 }
#endif
/* Debug builds count the locks that a thread holds, to detect calls that are not allowed then. */
#ifdef GASNET_DEBUG
extern void gasneti_hsl_counted(int change);
#define GASNETI_HSL_COUNT(change) gasneti_hsl_counted(change)
#else
#define GASNETI_HSL_COUNT(change) ((void)0)
#endif
GASNETT_INLINE(gex_HSL_Init) void gex_HSL_Init(gex_HSL_t* hsl) {
#ifdef GASNET_PAR
  gasnett_mutex_init(&hsl->gasneti_lock);
#endif
  (void)hsl;
}
GASNETT_INLINE(gex_HSL_Destroy) void gex_HSL_Destroy(gex_HSL_t* hsl) {
#ifdef GASNET_PAR
  gasnett_mutex_destroy(&hsl->gasneti_lock);
#endif
  (void)hsl;
}
GASNETT_INLINE(gex_HSL_Lock) void gex_HSL_Lock(gex_HSL_t* hsl) {
#ifdef GASNET_PAR
  gasnett_mutex_lock(&hsl->gasneti_lock);
#endif
  GASNETI_HSL_COUNT(1);
  (void)hsl;
}
GASNETT_INLINE(gex_HSL_Unlock) void gex_HSL_Unlock(gex_HSL_t* hsl) {
  GASNETI_HSL_COUNT(-1);
#ifdef GASNET_PAR
  gasnett_mutex_unlock(&hsl->gasneti_lock);
#endif
  (void)hsl;
}
/** Returns GASNET_OK or GASNET_ERR_NOT_READY. */
GASNETT_INLINE(gex_HSL_Trylock) int gex_HSL_Trylock(gex_HSL_t* hsl) {
#ifdef GASNET_PAR
  if (gasnett_mutex_trylock(&hsl->gasneti_lock) != 0) return GASNET_ERR_NOT_READY;
#endif
  GASNETI_HSL_COUNT(1);
  (void)hsl;
  return GASNET_OK;
}

/* --------------------------------------------------------------------------------------- events */

extern int gex_Event_Test(gex_Event_t event);
extern void gex_Event_Wait(gex_Event_t event);
extern int gex_Event_TestSome(gex_Event_t* pevent, size_t numevents, gex_Flags_t flags);
extern void gex_Event_WaitSome(gex_Event_t* pevent, size_t numevents, gex_Flags_t flags);
extern int gex_Event_TestAll(gex_Event_t* pevent, size_t numevents, gex_Flags_t flags);
extern void gex_Event_WaitAll(gex_Event_t* pevent, size_t numevents, gex_Flags_t flags);
extern gex_Event_t gex_Event_QueryLeaf(gex_Event_t root, gex_EC_t event_category);
extern int gex_NBI_Test(gex_EC_t event_mask, gex_Flags_t flags);
extern void gex_NBI_Wait(gex_EC_t event_mask, gex_Flags_t flags);
extern void gex_NBI_BeginAccessRegion(gex_Flags_t flags);
extern gex_Event_t gex_NBI_EndAccessRegion(gex_Flags_t flags);

/* ------------------------------------------------------------------------------------- barriers */

#define GASNET_BARRIERFLAG_ANONYMOUS 1
#define GASNET_BARRIERFLAG_MISMATCH 2
#define GASNET_BARRIERFLAG_UNNAMED 9
extern void gasnet_barrier_notify(int id, int flags);
extern int gasnet_barrier_wait(int id, int flags);
extern int gasnet_barrier_try(int id, int flags);
extern int gasnet_barrier(int id, int flags);
extern int gasnet_barrier_result(int* id);
extern gex_Event_t gex_Coll_BarrierNB(gex_TM_t tm, gex_Flags_t flags);
extern void gex_Coll_BarrierBlocking(gex_TM_t tm, gex_Flags_t flags);

GASNETT_END_EXTERNC

#include <gasneti_am.h>
#include <gasneti_rma.h>

#endif /* _GASNETEX_H */

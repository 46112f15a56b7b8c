/* gasnet_fwd.h: simple types and constants of GASNet-EX only. Needs stdint.h only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_FWD_H
#define GASNET_FWD_H

#include <stdint.h>

/* ---------------------------------------------------------------------------------------- types */

typedef uint32_t gex_Rank_t;
#define GEX_RANK_INVALID (~(gex_Rank_t)0)

typedef uint16_t gex_EP_Index_t;

typedef struct {
  gex_Rank_t gex_rank;
  gex_EP_Index_t gex_ep_index;
} gex_EP_Location_t;

typedef void* gex_Addr_t;
typedef uint32_t gex_Flags_t;
typedef uint32_t gex_DT_t;
typedef uint32_t gex_OP_t;
typedef uint32_t gex_EP_Capabilities_t;

/* --------------------------------------------------------------------------------------- events */

struct gasneti_event;
typedef struct gasneti_event* gex_Event_t;
#define GEX_EVENT_INVALID ((gex_Event_t)(uintptr_t)0)
#define GEX_EVENT_NO_OP ((gex_Event_t)(uintptr_t)1)
#define GEX_EVENT_NOW ((gex_Event_t*)(uintptr_t)1)
#define GEX_EVENT_DEFER ((gex_Event_t*)(uintptr_t)2)
#define GEX_EVENT_GROUP ((gex_Event_t*)(uintptr_t)3)

/* ---------------------------------------------------------------------------------------- flags */

/* Point-to-point communication. GEX_FLAG_PEER_NEVER_... are in gasnetex.h. */
#define GEX_FLAG_IMMEDIATE ((gex_Flags_t)1 << 0)
#define GEX_FLAG_SELF_SEG_UNKNOWN ((gex_Flags_t)1 << 3)
#define GEX_FLAG_SELF_SEG_SOME ((gex_Flags_t)1 << 4)
#define GEX_FLAG_SELF_SEG_BOUND ((gex_Flags_t)1 << 5)
#define GEX_FLAG_SELF_SEG_OFFSET ((gex_Flags_t)1 << 6)
#define GEX_FLAG_PEER_SEG_UNKNOWN ((gex_Flags_t)1 << 7)
#define GEX_FLAG_PEER_SEG_SOME ((gex_Flags_t)1 << 8)
#define GEX_FLAG_PEER_SEG_BOUND ((gex_Flags_t)1 << 9)
#define GEX_FLAG_PEER_SEG_OFFSET ((gex_Flags_t)1 << 10)

/* gex_AM_Max... and gex_AM_Prepare... */
#define GEX_FLAG_AM_PREPARE_LEAST_CLIENT ((gex_Flags_t)1 << 11)
#define GEX_FLAG_AM_PREPARE_LEAST_ALLOC ((gex_Flags_t)1 << 12)

/* gex_VIS_... */
#define GEX_FLAG_ENABLE_LEAF_LC ((gex_Flags_t)1 << 11)

/* gex_AD_Op... */
#define GEX_FLAG_AD_REL ((gex_Flags_t)1 << 1)
#define GEX_FLAG_AD_ACQ ((gex_Flags_t)1 << 2)
#define GEX_FLAG_AD_MY_RANK ((gex_Flags_t)1 << 11)
#define GEX_FLAG_AD_MY_NBRHD ((gex_Flags_t)1 << 12)
#define GEX_FLAG_RANK_IS_JOBRANK ((gex_Flags_t)1 << 13)

/* gex_AD_Create */
#define GEX_FLAG_AD_FAVOR_MY_RANK ((gex_Flags_t)1 << 0)
#define GEX_FLAG_AD_FAVOR_MY_NBRHD ((gex_Flags_t)1 << 1)
#define GEX_FLAG_AD_FAVOR_REMOTE ((gex_Flags_t)1 << 2)

/* Registration of handlers. */
#define GEX_FLAG_AM_SHORT ((gex_Flags_t)1 << 0)
#define GEX_FLAG_AM_MEDIUM ((gex_Flags_t)1 << 1)
#define GEX_FLAG_AM_LONG ((gex_Flags_t)1 << 2)
#define GEX_FLAG_AM_MEDLONG (GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_LONG)
#define GEX_FLAG_AM_REQUEST ((gex_Flags_t)1 << 3)
#define GEX_FLAG_AM_REPLY ((gex_Flags_t)1 << 4)
#define GEX_FLAG_AM_REQREP (GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_REPLY)

/* gex_Client_Init */
#define GEX_FLAG_USES_GASNET1 ((gex_Flags_t)1 << 0)
#define GEX_FLAG_DEFER_THREADS ((gex_Flags_t)1 << 1)

/* gex_TM_Split, gex_TM_Create, gex_TM_Destroy */
#define GEX_FLAG_TM_SCRATCH_SIZE_MIN ((gex_Flags_t)1 << 0)
#define GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED ((gex_Flags_t)1 << 1)
#define GEX_FLAG_TM_GLOBAL_SCRATCH ((gex_Flags_t)1 << 2)
#define GEX_FLAG_TM_LOCAL_SCRATCH ((gex_Flags_t)1 << 3)
#define GEX_FLAG_TM_SYMMETRIC_SCRATCH ((gex_Flags_t)1 << 4)
#define GEX_FLAG_TM_NO_SCRATCH ((gex_Flags_t)1 << 5)
#define GEX_FLAG_SCRATCH_SEG_OFFSET ((gex_Flags_t)1 << 6)
#define GEX_FLAG_GLOBALLY_QUIESCED ((gex_Flags_t)1 << 13)

/* gex_EP_Create */
#define GEX_FLAG_HINT_ACCEL_AD ((gex_Flags_t)1 << 0)
#define GEX_FLAG_HINT_ACCEL_COLL ((gex_Flags_t)1 << 1)
#define GEX_FLAG_HINT_ACCEL_ALL (GEX_FLAG_HINT_ACCEL_AD | GEX_FLAG_HINT_ACCEL_COLL)

#define GEX_EP_CAPABILITY_RMA ((gex_EP_Capabilities_t)1 << 0)
#define GEX_EP_CAPABILITY_AM ((gex_EP_Capabilities_t)1 << 1)
#define GEX_EP_CAPABILITY_VIS ((gex_EP_Capabilities_t)1 << 2)
#define GEX_EP_CAPABILITY_COLL ((gex_EP_Capabilities_t)1 << 3)
#define GEX_EP_CAPABILITY_AD ((gex_EP_Capabilities_t)1 << 4)
#define GEX_EP_CAPABILITY_ALL ((gex_EP_Capabilities_t)31)

/* --------------------------------------------------------------- data types and operation codes */

#define GEX_DT_I32 ((gex_DT_t)1 << 0)
#define GEX_DT_U32 ((gex_DT_t)1 << 1)
#define GEX_DT_I64 ((gex_DT_t)1 << 2)
#define GEX_DT_U64 ((gex_DT_t)1 << 3)
#define GEX_DT_FLT ((gex_DT_t)1 << 4)
#define GEX_DT_DBL ((gex_DT_t)1 << 5)
#define GEX_DT_USER ((gex_DT_t)1 << 6)

#define GEX_OP_AND ((gex_OP_t)1 << 0)
#define GEX_OP_OR ((gex_OP_t)1 << 1)
#define GEX_OP_XOR ((gex_OP_t)1 << 2)
#define GEX_OP_ADD ((gex_OP_t)1 << 3)
#define GEX_OP_SUB ((gex_OP_t)1 << 4)
#define GEX_OP_MULT ((gex_OP_t)1 << 5)
#define GEX_OP_MIN ((gex_OP_t)1 << 6)
#define GEX_OP_MAX ((gex_OP_t)1 << 7)
#define GEX_OP_INC ((gex_OP_t)1 << 8)
#define GEX_OP_DEC ((gex_OP_t)1 << 9)
#define GEX_OP_SET ((gex_OP_t)1 << 10)
#define GEX_OP_CAS ((gex_OP_t)1 << 11)
#define GEX_OP_TO_FETCHING(op) (((gex_OP_t)(op) << 15))
#define GEX_OP_TO_NONFETCHING(op) (((gex_OP_t)(op) >> 15))
#define GEX_OP_FAND ((gex_OP_t)1 << 15)
#define GEX_OP_FOR ((gex_OP_t)1 << 16)
#define GEX_OP_FXOR ((gex_OP_t)1 << 17)
#define GEX_OP_FADD ((gex_OP_t)1 << 18)
#define GEX_OP_FSUB ((gex_OP_t)1 << 19)
#define GEX_OP_FMULT ((gex_OP_t)1 << 20)
#define GEX_OP_FMIN ((gex_OP_t)1 << 21)
#define GEX_OP_FMAX ((gex_OP_t)1 << 22)
#define GEX_OP_FINC ((gex_OP_t)1 << 23)
#define GEX_OP_FDEC ((gex_OP_t)1 << 24)
#define GEX_OP_SWAP ((gex_OP_t)1 << 25)
#define GEX_OP_FCAS ((gex_OP_t)1 << 26)
#define GEX_OP_CSWAP GEX_OP_FCAS
#define GEX_OP_GET ((gex_OP_t)1 << 27)
#define GEX_OP_USER ((gex_OP_t)1 << 30)
#define GEX_OP_USER_NC ((gex_OP_t)1 << 31)

#endif /* GASNET_FWD_H */

/* values.c: every value, size and layout on which clients depend. check_headers.py compiles it as
 * C99, C11 and C++11 to 20, in each mode. Nothing runs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet.h>
#include <gasnet_coll.h>
#include <gasnet_mk.h>
#include <gasnet_ratomic.h>
#include <gasnet_vis.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
/* A negative size is an error in every standard. */
#define ASSERT_TRUE(condition) extern char JOIN(assertion_, __LINE__)[(condition) ? 1 : -1]
#define ASSERT_BIT(flag, bit) ASSERT_TRUE((flag) == 1u << (bit))

/* Sizes and signs of types. */
ASSERT_TRUE(sizeof(gex_Rank_t) == 4 && (gex_Rank_t)-1 > 0);
ASSERT_TRUE(sizeof(gex_EP_Index_t) == 2 && (gex_EP_Index_t)-1 > 0);
ASSERT_TRUE(sizeof(gex_Flags_t) == 4 && sizeof(gex_DT_t) == 4 && sizeof(gex_OP_t) == 4);
ASSERT_TRUE(sizeof(gex_EP_Capabilities_t) == 4);
ASSERT_TRUE(sizeof(gex_Event_t) == sizeof(void*) && sizeof(gex_TM_t) == sizeof(void*));
ASSERT_TRUE(sizeof(gex_Client_t) == sizeof(void*) && sizeof(gex_EP_t) == sizeof(void*));
ASSERT_TRUE(sizeof(gex_Segment_t) == sizeof(void*) && sizeof(gex_MK_t) == sizeof(void*));
ASSERT_TRUE(sizeof(gex_AM_SrcDesc_t) == sizeof(void*) && sizeof(gex_Token_t) == sizeof(void*));
ASSERT_TRUE(sizeof(gex_AD_t) == sizeof(void*) && sizeof(gex_Addr_t) == sizeof(void*));
ASSERT_TRUE(sizeof(gex_EC_t) == sizeof(unsigned) && sizeof(gex_TI_t) == sizeof(unsigned));
ASSERT_TRUE(sizeof(gex_RMA_Value_t) == SIZEOF_GEX_RMA_VALUE_T && (gex_RMA_Value_t)-1 > 0);
ASSERT_TRUE(sizeof(gex_AM_Index_t) == 1 && sizeof(gex_AM_Arg_t) == 4 && (gex_AM_Arg_t)-1 < 0);
ASSERT_TRUE(sizeof(gasnet_memvec_t) == sizeof(gex_Memvec_t));
ASSERT_TRUE(offsetof(gasnet_memvec_t, len) == offsetof(gex_Memvec_t, gex_len));
ASSERT_TRUE(offsetof(gex_AM_Entry_t, gex_index) < offsetof(gex_AM_Entry_t, gex_fnptr));
ASSERT_TRUE(offsetof(gex_AM_Entry_t, gex_fnptr) < offsetof(gex_AM_Entry_t, gex_flags));
ASSERT_TRUE(offsetof(gex_AM_Entry_t, gex_flags) < offsetof(gex_AM_Entry_t, gex_nargs));
ASSERT_TRUE(offsetof(gex_AM_Entry_t, gex_nargs) < offsetof(gex_AM_Entry_t, gex_cdata));
ASSERT_TRUE(offsetof(gex_AM_Entry_t, gex_cdata) < offsetof(gex_AM_Entry_t, gex_name));
ASSERT_TRUE(offsetof(gex_Token_Info_t, gex_srcrank) < offsetof(gex_Token_Info_t, gex_ep));
ASSERT_TRUE(offsetof(gex_Token_Info_t, gex_ep) < offsetof(gex_Token_Info_t, gex_entry));
ASSERT_TRUE(offsetof(gex_Token_Info_t, gex_entry) < offsetof(gex_Token_Info_t, gex_is_req));
ASSERT_TRUE(offsetof(gex_MK_Create_args_t, gex_flags) == 0);
ASSERT_TRUE(offsetof(gex_MK_Create_args_t, gex_class) == 8);
ASSERT_TRUE(sizeof(gasnett_atomic32_t) == 4 && sizeof(gasnett_atomic64_t) == 8);
ASSERT_TRUE(sizeof(gasnett_strongatomic32_t) == 4 && sizeof(gasnett_strongatomic64_t) == 8);

/* Events and handles. */
gex_Event_t event_initialisers[] = {GEX_EVENT_INVALID, GEX_EVENT_NO_OP};
gex_Event_t* option_initialisers[] = {GEX_EVENT_NOW, GEX_EVENT_DEFER, GEX_EVENT_GROUP};
gex_Client_t client_initialiser = GEX_CLIENT_INVALID;
gex_EP_t endpoint_initialiser = GEX_EP_INVALID;
gex_TM_t team_initialiser = GEX_TM_INVALID;
gex_Segment_t segment_initialiser = GEX_SEGMENT_INVALID;
gex_MK_t kind_initialisers[] = {GEX_MK_INVALID, GEX_MK_HOST};
gex_AM_SrcDesc_t descriptor_initialiser = GEX_AM_SRCDESC_NO_OP;
gex_AD_t domain_initialiser = GEX_AD_INVALID;
gex_HSL_t lock_initialiser = GEX_HSL_INITIALIZER;
gasnett_atomic_t atomic_initialiser = gasnett_atomic_init(1);
gasnett_mutex_t mutex_initialiser = GASNETT_MUTEX_INITIALIZER;
gasnett_cond_t condition_initialiser = GASNETT_COND_INITIALIZER;
gasnett_rwlock_t rwlock_initialiser = GASNETT_RWLOCK_INITIALIZER;

ASSERT_TRUE(GEX_RANK_INVALID == 0xFFFFFFFFu);
ASSERT_TRUE(GASNET_OK == 0 && GASNET_ERR_NOT_INIT == 10001 && GASNET_ERR_RESOURCE == 10002);
ASSERT_TRUE(GASNET_ERR_BAD_ARG == 10003 && GASNET_ERR_NOT_READY == 10004);
ASSERT_TRUE(GASNET_ERR_BARRIER_MISMATCH == 10005);
ASSERT_TRUE(GASNET_WAIT_SPIN == 0 && GASNET_WAIT_BLOCK == 1 && GASNET_WAIT_SPINBLOCK == 2);
ASSERT_TRUE(GASNET_BARRIERFLAG_ANONYMOUS == 1 && GASNET_BARRIERFLAG_MISMATCH == 2);
ASSERT_TRUE(GASNET_BARRIERFLAG_UNNAMED == 9);

/* Flags. */
ASSERT_BIT(GEX_FLAG_IMMEDIATE, 0);
ASSERT_BIT(GEX_FLAG_SELF_SEG_UNKNOWN, 3);
ASSERT_BIT(GEX_FLAG_SELF_SEG_SOME, 4);
ASSERT_BIT(GEX_FLAG_SELF_SEG_BOUND, 5);
ASSERT_BIT(GEX_FLAG_SELF_SEG_OFFSET, 6);
ASSERT_BIT(GEX_FLAG_PEER_SEG_UNKNOWN, 7);
ASSERT_BIT(GEX_FLAG_PEER_SEG_SOME, 8);
ASSERT_BIT(GEX_FLAG_PEER_SEG_BOUND, 9);
ASSERT_BIT(GEX_FLAG_PEER_SEG_OFFSET, 10);
ASSERT_BIT(GEX_FLAG_PEER_NEVER_NBRHD, 14);
ASSERT_BIT(GEX_FLAG_PEER_NEVER_SELF, 15);
ASSERT_BIT(GEX_FLAG_AM_PREPARE_LEAST_CLIENT, 11);
ASSERT_BIT(GEX_FLAG_AM_PREPARE_LEAST_ALLOC, 12);
ASSERT_BIT(GEX_FLAG_ENABLE_LEAF_LC, 11);
ASSERT_BIT(GEX_FLAG_AD_REL, 1);
ASSERT_BIT(GEX_FLAG_AD_ACQ, 2);
ASSERT_BIT(GEX_FLAG_AD_MY_RANK, 11);
ASSERT_BIT(GEX_FLAG_AD_MY_NBRHD, 12);
ASSERT_BIT(GEX_FLAG_RANK_IS_JOBRANK, 13);
ASSERT_BIT(GEX_FLAG_AD_FAVOR_MY_RANK, 0);
ASSERT_BIT(GEX_FLAG_AD_FAVOR_MY_NBRHD, 1);
ASSERT_BIT(GEX_FLAG_AD_FAVOR_REMOTE, 2);
ASSERT_BIT(GEX_FLAG_AM_SHORT, 0);
ASSERT_BIT(GEX_FLAG_AM_MEDIUM, 1);
ASSERT_BIT(GEX_FLAG_AM_LONG, 2);
ASSERT_TRUE(GEX_FLAG_AM_MEDLONG == 6 && GEX_FLAG_AM_REQREP == 24);
ASSERT_BIT(GEX_FLAG_AM_REQUEST, 3);
ASSERT_BIT(GEX_FLAG_AM_REPLY, 4);
ASSERT_BIT(GEX_FLAG_USES_GASNET1, 0);
ASSERT_BIT(GEX_FLAG_DEFER_THREADS, 1);
ASSERT_BIT(GEX_FLAG_TM_SCRATCH_SIZE_MIN, 0);
ASSERT_BIT(GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED, 1);
ASSERT_BIT(GEX_FLAG_TM_GLOBAL_SCRATCH, 2);
ASSERT_BIT(GEX_FLAG_TM_LOCAL_SCRATCH, 3);
ASSERT_BIT(GEX_FLAG_TM_SYMMETRIC_SCRATCH, 4);
ASSERT_BIT(GEX_FLAG_TM_NO_SCRATCH, 5);
ASSERT_BIT(GEX_FLAG_SCRATCH_SEG_OFFSET, 6);
ASSERT_BIT(GEX_FLAG_GLOBALLY_QUIESCED, 13);
ASSERT_BIT(GEX_FLAG_HINT_ACCEL_AD, 0);
ASSERT_BIT(GEX_FLAG_HINT_ACCEL_COLL, 1);
ASSERT_TRUE(GEX_FLAG_HINT_ACCEL_ALL == 3);
ASSERT_BIT(GEX_EP_CAPABILITY_RMA, 0);
ASSERT_BIT(GEX_EP_CAPABILITY_AM, 1);
ASSERT_BIT(GEX_EP_CAPABILITY_VIS, 2);
ASSERT_BIT(GEX_EP_CAPABILITY_COLL, 3);
ASSERT_BIT(GEX_EP_CAPABILITY_AD, 4);
ASSERT_TRUE(GEX_EP_CAPABILITY_ALL == 31 && GEX_TI_ALL == 31);
ASSERT_BIT(GEX_TI_SRCRANK, 0);
ASSERT_BIT(GEX_TI_ENTRY, 1);
ASSERT_BIT(GEX_TI_IS_REQ, 2);
ASSERT_BIT(GEX_TI_IS_LONG, 3);
ASSERT_BIT(GEX_TI_EP, 4);
ASSERT_TRUE(GEX_EC_GET&& GEX_EC_PUT&& GEX_EC_AM&& GEX_EC_LC&& GEX_EC_RMW);
ASSERT_TRUE((GEX_EC_ALL & (GEX_EC_GET | GEX_EC_PUT | GEX_EC_AM | GEX_EC_LC | GEX_EC_RMW)) ==
            (GEX_EC_GET | GEX_EC_PUT | GEX_EC_AM | GEX_EC_LC | GEX_EC_RMW));
ASSERT_BIT(GEX_THREAD_ROLE_RCV, 0);
ASSERT_BIT(GEX_THREAD_ROLE_SND, 1);

/* Types and operations. */
ASSERT_BIT(GEX_DT_I32, 0);
ASSERT_BIT(GEX_DT_U32, 1);
ASSERT_BIT(GEX_DT_I64, 2);
ASSERT_BIT(GEX_DT_U64, 3);
ASSERT_BIT(GEX_DT_FLT, 4);
ASSERT_BIT(GEX_DT_DBL, 5);
ASSERT_BIT(GEX_DT_USER, 6);
ASSERT_BIT(GEX_OP_AND, 0);
ASSERT_BIT(GEX_OP_OR, 1);
ASSERT_BIT(GEX_OP_XOR, 2);
ASSERT_BIT(GEX_OP_ADD, 3);
ASSERT_BIT(GEX_OP_SUB, 4);
ASSERT_BIT(GEX_OP_MULT, 5);
ASSERT_BIT(GEX_OP_MIN, 6);
ASSERT_BIT(GEX_OP_MAX, 7);
ASSERT_BIT(GEX_OP_INC, 8);
ASSERT_BIT(GEX_OP_DEC, 9);
ASSERT_BIT(GEX_OP_SET, 10);
ASSERT_BIT(GEX_OP_CAS, 11);
ASSERT_BIT(GEX_OP_FAND, 15);
ASSERT_BIT(GEX_OP_FOR, 16);
ASSERT_BIT(GEX_OP_FXOR, 17);
ASSERT_BIT(GEX_OP_FADD, 18);
ASSERT_BIT(GEX_OP_FSUB, 19);
ASSERT_BIT(GEX_OP_FMULT, 20);
ASSERT_BIT(GEX_OP_FMIN, 21);
ASSERT_BIT(GEX_OP_FMAX, 22);
ASSERT_BIT(GEX_OP_FINC, 23);
ASSERT_BIT(GEX_OP_FDEC, 24);
ASSERT_BIT(GEX_OP_SWAP, 25);
ASSERT_BIT(GEX_OP_FCAS, 26);
ASSERT_BIT(GEX_OP_GET, 27);
ASSERT_BIT(GEX_OP_USER, 30);
ASSERT_BIT(GEX_OP_USER_NC, 31);
ASSERT_TRUE(GEX_OP_CSWAP == GEX_OP_FCAS);
ASSERT_TRUE(GEX_OP_TO_FETCHING(GEX_OP_SET) == GEX_OP_SWAP);
ASSERT_TRUE(GEX_OP_TO_NONFETCHING(GEX_OP_FCAS) == GEX_OP_CAS);
ASSERT_TRUE(GEX_MK_CLASS_HOST == 0 && GEX_MK_CLASS_CUDA_UVA == 1);
ASSERT_TRUE(GEX_MK_CLASS_HIP == 2 && GEX_MK_CLASS_ZE == 3);

/* Fences of the tools. */
ASSERT_TRUE(GASNETT_ATOMIC_NONE == 0 && GASNETT_ATOMIC_RMB_PRE == 1);
ASSERT_TRUE(GASNETT_ATOMIC_REL == GEX_FLAG_AD_REL && GASNETT_ATOMIC_ACQ == GEX_FLAG_AD_ACQ);
ASSERT_TRUE(GASNETT_ATOMIC_WMB_POST == 8 && GASNETT_ATOMIC_ACQ_IF_TRUE == 0x10);
ASSERT_TRUE(GASNETT_ATOMIC_ACQ_IF_FALSE == 0x20);
ASSERT_TRUE(GASNETT_ATOMIC_MB_PRE == 3 && GASNETT_ATOMIC_MB_POST == 12);

/* Collectives that the specification does not name. */
ASSERT_TRUE(GASNET_COLL_IN_NOSYNC == 1 && GASNET_COLL_IN_MYSYNC == 2);
ASSERT_TRUE(GASNET_COLL_IN_ALLSYNC == 4 && GASNET_COLL_OUT_NOSYNC == 8);
ASSERT_TRUE(GASNET_COLL_OUT_MYSYNC == 0x10 && GASNET_COLL_OUT_ALLSYNC == 0x20);
ASSERT_TRUE(GASNET_COLL_SYNC_FLAG_MASK == 0x3F && GASNET_COLL_LOCAL == 0x80);
ASSERT_TRUE(GASNET_COLL_DST_IN_SEGMENT == 0x400 && GASNET_COLL_SRC_IN_SEGMENT == 0x800);
ASSERT_TRUE(GEX_VIS_MAX_PEERCOMPLETION >= 127);

/* Constants that are usable in conditions of the preprocessor. */
#if GEX_AM_INDEX_BASE > 128 || GASNET_MAXEPS < 1 || SIZEOF_GASNET_REGISTER_VALUE_T != 8
#error "limits"
#endif
#if GASNETT_PAGESIZE != 1 << GASNETT_PAGESHIFT || GASNET_PAGESIZE != GASNETT_PAGESIZE
#error "pages"
#endif
#if GASNET_SPEC_VERSION_MAJOR != 1 || GASNET_SPEC_VERSION_MINOR != 8 || GASNET_VERSION != 1
#error "GASNet-1"
#endif
#if GEX_SPEC_VERSION_MAJOR != 0 || GEX_SPEC_VERSION_MINOR != 17
#error "GASNet-EX"
#endif
#if GASNETT_SPEC_VERSION_MAJOR != 1 || GASNETT_SPEC_VERSION_MINOR != 20
#error "tools"
#endif
#if GASNET_RELEASE_VERSION_MAJOR != 2023 || GASNETT_RELEASE_VERSION_MINOR != 9 || \
    GASNETT_RELEASE_VERSION_PATCH != 0
#error "release"
#endif
#if defined(GASNET_SEQ) ? GASNETT_MAX_THREADS != 1 : GASNETT_MAX_THREADS != GASNETI_MAX_THREADS
#error "threads"
#endif
#if GASNET_SEQ + GASNET_PAR + GASNET_PARSYNC != 1 || GASNET_SEGMENT_FAST != 1 || !GASNET_PSHM
#error "configuration"
#endif
#if GASNET_DEBUG + GASNET_NDEBUG != 1 || GASNET_CONDUIT_PORTALS4 != 1
#error "configuration"
#endif
#if GASNET_HIDDEN_AM_CONCURRENCY_LEVEL != 0 || !GASNET_HAVE_MK_CLASS_HOST
#error "configuration"
#endif
#if !GASNET_SUPPORTS_TI_SRCRANK || !GASNET_SUPPORTS_TI_EP
#error "tokens"
#endif
#if GASNET_NATIVE_NP_ALLOC_REQ_MEDIUM != 1 || GASNET_NATIVE_NP_ALLOC_REP_MEDIUM != 1 || \
    GASNET_NATIVE_NP_ALLOC_REQ_LONG != 1 || GASNET_NATIVE_NP_ALLOC_REP_LONG != 1
#error "buffers of the library"
#endif
#if GASNET_SUPPORTS_AM_COMMIT_V2 != 20240906L || GASNET_SUPPORTS_AM_CANCEL != 20240418L
#error "negotiated payload"
#endif
#if GASNET_ALIGNED_SEGMENTS != 0 || GASNET_NULL_ARGV_OK != 1 || !GASNETT_USE_PRAGMA_GCC_DIAGNOSTIC
#error "configuration"
#endif
#if PLATFORM_ARCH_32 + PLATFORM_ARCH_64 != 1 || !PLATFORM_OS_LINUX || SIZEOF_INT != 4
#error "platform"
#endif
#if !HAVE_MMAP || !HAVE_PTHREAD_H || !PLATFORM_COMPILER_VERSION_GE(4, 0, 0)
#error "platform"
#endif

/* String literals. */
const char* const literals[] = {"" GASNET_CONFIG_STRING "",
                                "" GASNETT_CONFIG_STRING "",
                                "" GASNET_CONDUIT_NAME_STR "",
                                "" GASNET_CORE_VERSION_STR "",
                                "" GASNETT_SYSTEM_TUPLE "",
                                "" _STRINGIFY(GASNET_CONDUIT_NAME) "",
                                "" GASNETI_CONDUITS "",
                                "" GASNETI_BUILD_ID "",
                                "" PLATFORM_COMPILER_VERSION_STR "",
                                "" PRIuSZ PRIu64 PRId64 PRIx64 PRIuPTR ""};

GASNETT_IDENT(values_ident, "$values: kept $");

/* Types that are interchangeable. */
gex_Rank_t* same_rank(gasnet_node_t* node) { return node; }
gex_Token_t* same_token(gasnet_token_t* token) { return token; }
gex_AM_Index_t* same_index(gasnet_handler_t* handler) { return handler; }
gex_AM_Arg_t* same_argument(gasnet_handlerarg_t* argument) { return argument; }
gex_Event_t* same_event(gasnet_handle_t* handle) { return handle; }
gex_HSL_t* same_lock(gasnet_hsl_t* lock) { return lock; }

/* Every number of arguments, with the number in the name and without it. Never called. */
int call_all(gex_TM_t tm, gex_Token_t token, gex_Event_t* lc, char* buffer, gex_AM_SrcDesc_t sd) {
  int n = 0;
  n += gex_AM_RequestShort0(tm, 0, 200, 0);
  n += gex_AM_RequestShort16(tm, 0, 200, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
  n += gex_AM_RequestShort(tm, 0, 200, 0);
  n += gex_AM_RequestShort(tm, 0, 200, 0, 1);
  n += gex_AM_RequestShort(tm, 0, 200, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
  n += gex_AM_RequestMedium(tm, 0, 200, buffer, 8, lc, 0);
  n += gex_AM_RequestMedium(tm, 0, 200, buffer, 8, lc, 0, 1, 2, 3);
  n += gex_AM_RequestLong(tm, 0, 200, buffer, 8, buffer, lc, 0);
  n += gex_AM_RequestLong(tm, 0, 200, buffer, 8, buffer, lc, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                          12, 13, 14, 15, 16);
  n += gex_AM_ReplyShort(token, 200, 0);
  n += gex_AM_ReplyShort(token, 200, 0, 1, 2);
  n += gex_AM_ReplyMedium(token, 200, buffer, 8, lc, 0, 1);
  n += gex_AM_ReplyLong(token, 200, buffer, 8, buffer, lc, 0);
  gex_AM_CommitRequestMedium(sd, 200, 8);
  gex_AM_CommitRequestMedium(sd, 200, 8, 1, 2);
  gex_AM_CommitReplyLong(sd, 200, 8, buffer, 1);
  n += gex_AM_CommitRequestLong_v2(sd, 200, 8, buffer, 0, 1);
  n += gex_AM_CommitReplyMedium7_v2(sd, 200, 8, 0, 1, 2, 3, 4, 5, 6, 7);
  n += gasnet_AMRequestShort(0, 200, 0);
  n += gasnet_AMRequestShort(0, 200, 2, 1, 2);
  n += gasnet_AMRequestMedium3(0, 200, buffer, 8, 1, 2, 3);
  n += gasnet_AMReplyLong(token, 200, buffer, 8, buffer, 1, 1);
  n += gasnet_AMRequestLongAsync0(0, 200, buffer, 8, buffer);
  return n;
}

int use_macros(int value) {
  GASNET_BEGIN_FUNCTION();
  GASNET_POST_THREADINFO(GASNET_GET_THREADINFO());
  GASNETT_TRACE_PRINTF("%d", value);
  GASNETT_TRACE_SETSOURCELINE(__FILE__, __LINE__);
  GASNET_BLOCKUNTIL(value != 0);
  if_pf(value == 3) return 1;
  if_pt(value == 4) return 2;
  switch (value) {
    case 1:
      value++;
      GASNETT_FALLTHROUGH
    default:
      GASNETT_UNUSED_ARGS2(value, literals);
      break;
  }
  return GASNETT_PREDICT_TRUE(value) + MIN(1, 2) + MAX(1, 2);
}

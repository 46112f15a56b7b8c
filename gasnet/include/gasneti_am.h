/* gasneti_am.h: active messages. Private: include gasnetex.h.
 *
 * The calls with a number of arguments in their names are inline functions, which put the arguments
 * into an array. The calls without a number count their arguments. Both call one function of the
 * library per kind.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNETI_AM_H
#define GASNETI_AM_H

#define GASNETI_AM_MAX_ARGS 16

GASNETT_BEGIN_EXTERNC

extern unsigned int gex_AM_MaxArgs(void);
extern size_t gex_AM_MaxRequestLong(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t* lc_opt,
                                    gex_Flags_t flags, unsigned int numargs);
extern size_t gex_AM_MaxReplyLong(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t* lc_opt,
                                  gex_Flags_t flags, unsigned int numargs);
extern size_t gex_AM_MaxRequestMedium(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t* lc_opt,
                                      gex_Flags_t flags, unsigned int numargs);
extern size_t gex_AM_MaxReplyMedium(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t* lc_opt,
                                    gex_Flags_t flags, unsigned int numargs);
extern size_t gex_Token_MaxReplyLong(gex_Token_t token, const gex_Event_t* lc_opt,
                                     gex_Flags_t flags, unsigned int numargs);
extern size_t gex_Token_MaxReplyMedium(gex_Token_t token, const gex_Event_t* lc_opt,
                                       gex_Flags_t flags, unsigned int numargs);
extern size_t gex_AM_LUBRequestLong(void);
extern size_t gex_AM_LUBReplyLong(void);
extern size_t gex_AM_LUBRequestMedium(void);
extern size_t gex_AM_LUBReplyMedium(void);
extern gex_TI_t gex_Token_Info(gex_Token_t token, gex_Token_Info_t* info, gex_TI_t mask);

extern void* gex_AM_SrcDescAddr(gex_AM_SrcDesc_t sd);
extern size_t gex_AM_SrcDescSize(gex_AM_SrcDesc_t sd);
extern gex_AM_SrcDesc_t gex_AM_PrepareRequestMedium(gex_TM_t tm, gex_Rank_t rank,
                                                    const void* client_buf, size_t least_payload,
                                                    size_t most_payload, gex_Event_t* lc_opt,
                                                    gex_Flags_t flags, unsigned int numargs);
extern gex_AM_SrcDesc_t gex_AM_PrepareReplyMedium(gex_Token_t token, const void* client_buf,
                                                  size_t least_payload, size_t most_payload,
                                                  gex_Event_t* lc_opt, gex_Flags_t flags,
                                                  unsigned int numargs);
extern gex_AM_SrcDesc_t gex_AM_PrepareRequestLong(gex_TM_t tm, gex_Rank_t rank,
                                                  const void* client_buf, size_t least_payload,
                                                  size_t most_payload, void* dest_addr,
                                                  gex_Event_t* lc_opt, gex_Flags_t flags,
                                                  unsigned int numargs);
extern gex_AM_SrcDesc_t gex_AM_PrepareReplyLong(gex_Token_t token, const void* client_buf,
                                                size_t least_payload, size_t most_payload,
                                                void* dest_addr, gex_Event_t* lc_opt,
                                                gex_Flags_t flags, unsigned int numargs);
/* Each drops a prepared message. The flags are 0; returns 0. */
extern int gex_AM_CancelRequestMedium(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
extern int gex_AM_CancelReplyMedium(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
extern int gex_AM_CancelRequestLong(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
extern int gex_AM_CancelReplyLong(gex_AM_SrcDesc_t sd, gex_Flags_t flags);

/* Called by the inline functions below. */
extern int gasneti_am_request_short(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,
                                    gex_Flags_t flags, unsigned int numargs,
                                    const gex_AM_Arg_t* args);
extern int gasneti_am_request_medium(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,
                                     const void* source_addr, size_t nbytes, gex_Event_t* lc_opt,
                                     gex_Flags_t flags, unsigned int numargs,
                                     const gex_AM_Arg_t* args);
extern int gasneti_am_request_long(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,
                                   const void* source_addr, size_t nbytes, void* dest_addr,
                                   gex_Event_t* lc_opt, gex_Flags_t flags, unsigned int numargs,
                                   const gex_AM_Arg_t* args);
extern int gasneti_am_reply_short(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags,
                                  unsigned int numargs, const gex_AM_Arg_t* args);
extern int gasneti_am_reply_medium(gex_Token_t token, gex_AM_Index_t handler,
                                   const void* source_addr, size_t nbytes, gex_Event_t* lc_opt,
                                   gex_Flags_t flags, unsigned int numargs,
                                   const gex_AM_Arg_t* args);
extern int gasneti_am_reply_long(gex_Token_t token, gex_AM_Index_t handler, const void* source_addr,
                                 size_t nbytes, void* dest_addr, gex_Event_t* lc_opt,
                                 gex_Flags_t flags, unsigned int numargs, const gex_AM_Arg_t* args);
/* Nonzero with GEX_FLAG_IMMEDIATE: nothing was sent, and the descriptor is still valid. */
extern int gasneti_am_commit_request_medium(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler,
                                            size_t nbytes, gex_Flags_t flags, unsigned int numargs,
                                            const gex_AM_Arg_t* args);
extern int gasneti_am_commit_reply_medium(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler,
                                          size_t nbytes, gex_Flags_t flags, unsigned int numargs,
                                          const gex_AM_Arg_t* args);
extern int gasneti_am_commit_request_long(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler,
                                          size_t nbytes, void* dest_addr, gex_Flags_t flags,
                                          unsigned int numargs, const gex_AM_Arg_t* args);
extern int gasneti_am_commit_reply_long(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                        void* dest_addr, gex_Flags_t flags, unsigned int numargs,
                                        const gex_AM_Arg_t* args);

/* Number of messages of this process that flow control of a target has refused. */
extern uint64_t gasneti_am_refusals(void);

/* ------------------------------------------------------------- parameters, arguments and arrays by
 * number */

#define GASNETI_AM_PARAMETERS0
#define GASNETI_AM_PARAMETERS1 GASNETI_AM_PARAMETERS0, gex_AM_Arg_t a0
#define GASNETI_AM_PARAMETERS2 GASNETI_AM_PARAMETERS1, gex_AM_Arg_t a1
#define GASNETI_AM_PARAMETERS3 GASNETI_AM_PARAMETERS2, gex_AM_Arg_t a2
#define GASNETI_AM_PARAMETERS4 GASNETI_AM_PARAMETERS3, gex_AM_Arg_t a3
#define GASNETI_AM_PARAMETERS5 GASNETI_AM_PARAMETERS4, gex_AM_Arg_t a4
#define GASNETI_AM_PARAMETERS6 GASNETI_AM_PARAMETERS5, gex_AM_Arg_t a5
#define GASNETI_AM_PARAMETERS7 GASNETI_AM_PARAMETERS6, gex_AM_Arg_t a6
#define GASNETI_AM_PARAMETERS8 GASNETI_AM_PARAMETERS7, gex_AM_Arg_t a7
#define GASNETI_AM_PARAMETERS9 GASNETI_AM_PARAMETERS8, gex_AM_Arg_t a8
#define GASNETI_AM_PARAMETERS10 GASNETI_AM_PARAMETERS9, gex_AM_Arg_t a9
#define GASNETI_AM_PARAMETERS11 GASNETI_AM_PARAMETERS10, gex_AM_Arg_t a10
#define GASNETI_AM_PARAMETERS12 GASNETI_AM_PARAMETERS11, gex_AM_Arg_t a11
#define GASNETI_AM_PARAMETERS13 GASNETI_AM_PARAMETERS12, gex_AM_Arg_t a12
#define GASNETI_AM_PARAMETERS14 GASNETI_AM_PARAMETERS13, gex_AM_Arg_t a13
#define GASNETI_AM_PARAMETERS15 GASNETI_AM_PARAMETERS14, gex_AM_Arg_t a14
#define GASNETI_AM_PARAMETERS16 GASNETI_AM_PARAMETERS15, gex_AM_Arg_t a15
#define GASNETI_AM_PASS0
#define GASNETI_AM_PASS1 GASNETI_AM_PASS0, a0
#define GASNETI_AM_PASS2 GASNETI_AM_PASS1, a1
#define GASNETI_AM_PASS3 GASNETI_AM_PASS2, a2
#define GASNETI_AM_PASS4 GASNETI_AM_PASS3, a3
#define GASNETI_AM_PASS5 GASNETI_AM_PASS4, a4
#define GASNETI_AM_PASS6 GASNETI_AM_PASS5, a5
#define GASNETI_AM_PASS7 GASNETI_AM_PASS6, a6
#define GASNETI_AM_PASS8 GASNETI_AM_PASS7, a7
#define GASNETI_AM_PASS9 GASNETI_AM_PASS8, a8
#define GASNETI_AM_PASS10 GASNETI_AM_PASS9, a9
#define GASNETI_AM_PASS11 GASNETI_AM_PASS10, a10
#define GASNETI_AM_PASS12 GASNETI_AM_PASS11, a11
#define GASNETI_AM_PASS13 GASNETI_AM_PASS12, a12
#define GASNETI_AM_PASS14 GASNETI_AM_PASS13, a13
#define GASNETI_AM_PASS15 GASNETI_AM_PASS14, a14
#define GASNETI_AM_PASS16 GASNETI_AM_PASS15, a15
#define GASNETI_AM_LIST1 a0
#define GASNETI_AM_LIST2 GASNETI_AM_LIST1, a1
#define GASNETI_AM_LIST3 GASNETI_AM_LIST2, a2
#define GASNETI_AM_LIST4 GASNETI_AM_LIST3, a3
#define GASNETI_AM_LIST5 GASNETI_AM_LIST4, a4
#define GASNETI_AM_LIST6 GASNETI_AM_LIST5, a5
#define GASNETI_AM_LIST7 GASNETI_AM_LIST6, a6
#define GASNETI_AM_LIST8 GASNETI_AM_LIST7, a7
#define GASNETI_AM_LIST9 GASNETI_AM_LIST8, a8
#define GASNETI_AM_LIST10 GASNETI_AM_LIST9, a9
#define GASNETI_AM_LIST11 GASNETI_AM_LIST10, a10
#define GASNETI_AM_LIST12 GASNETI_AM_LIST11, a11
#define GASNETI_AM_LIST13 GASNETI_AM_LIST12, a12
#define GASNETI_AM_LIST14 GASNETI_AM_LIST13, a13
#define GASNETI_AM_LIST15 GASNETI_AM_LIST14, a14
#define GASNETI_AM_LIST16 GASNETI_AM_LIST15, a15
#define GASNETI_AM_ARRAY0 const gex_AM_Arg_t* const args = (const gex_AM_Arg_t*)0;
#define GASNETI_AM_ARRAY1 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST1};
#define GASNETI_AM_ARRAY2 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST2};
#define GASNETI_AM_ARRAY3 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST3};
#define GASNETI_AM_ARRAY4 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST4};
#define GASNETI_AM_ARRAY5 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST5};
#define GASNETI_AM_ARRAY6 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST6};
#define GASNETI_AM_ARRAY7 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST7};
#define GASNETI_AM_ARRAY8 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST8};
#define GASNETI_AM_ARRAY9 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST9};
#define GASNETI_AM_ARRAY10 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST10};
#define GASNETI_AM_ARRAY11 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST11};
#define GASNETI_AM_ARRAY12 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST12};
#define GASNETI_AM_ARRAY13 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST13};
#define GASNETI_AM_ARRAY14 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST14};
#define GASNETI_AM_ARRAY15 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST15};
#define GASNETI_AM_ARRAY16 const gex_AM_Arg_t args[] = {GASNETI_AM_LIST16};
#define GASNETI_AM_FOR_EACH(X) \
  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)

#define GASNETI_AM_DEFINE(M)                                                                \
  GASNETT_INLINE(gex_AM_RequestShort##M)                                                    \
  int gex_AM_RequestShort##M(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,          \
                             gex_Flags_t flags GASNETI_AM_PARAMETERS##M) {                  \
    GASNETI_AM_ARRAY##M return gasneti_am_request_short(tm, rank, handler, flags, M, args); \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE

#define GASNETI_AM_DEFINE(M)                                                                     \
  GASNETT_INLINE(gex_AM_RequestMedium##M)                                                        \
  int gex_AM_RequestMedium##M(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,              \
                              const void* source_addr, size_t nbytes, gex_Event_t* lc_opt,       \
                              gex_Flags_t flags GASNETI_AM_PARAMETERS##M) {                      \
    GASNETI_AM_ARRAY##M return gasneti_am_request_medium(tm, rank, handler, source_addr, nbytes, \
                                                         lc_opt, flags, M, args);                \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE

#define GASNETI_AM_DEFINE(M)                                                                   \
  GASNETT_INLINE(gex_AM_RequestLong##M)                                                        \
  int gex_AM_RequestLong##M(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,              \
                            const void* source_addr, size_t nbytes, void* dest_addr,           \
                            gex_Event_t* lc_opt, gex_Flags_t flags GASNETI_AM_PARAMETERS##M) { \
    GASNETI_AM_ARRAY##M return gasneti_am_request_long(tm, rank, handler, source_addr, nbytes, \
                                                       dest_addr, lc_opt, flags, M, args);     \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE

#define GASNETI_AM_DEFINE(M)                                                           \
  GASNETT_INLINE(gex_AM_ReplyShort##M)                                                 \
  int gex_AM_ReplyShort##M(gex_Token_t token, gex_AM_Index_t handler,                  \
                           gex_Flags_t flags GASNETI_AM_PARAMETERS##M) {               \
    GASNETI_AM_ARRAY##M return gasneti_am_reply_short(token, handler, flags, M, args); \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE

#define GASNETI_AM_DEFINE(M)                                                                    \
  GASNETT_INLINE(gex_AM_ReplyMedium##M)                                                         \
  int gex_AM_ReplyMedium##M(gex_Token_t token, gex_AM_Index_t handler, const void* source_addr, \
                            size_t nbytes, gex_Event_t* lc_opt,                                 \
                            gex_Flags_t flags GASNETI_AM_PARAMETERS##M) {                       \
    GASNETI_AM_ARRAY##M return gasneti_am_reply_medium(token, handler, source_addr, nbytes,     \
                                                       lc_opt, flags, M, args);                 \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE

#define GASNETI_AM_DEFINE(M)                                                                  \
  GASNETT_INLINE(gex_AM_ReplyLong##M)                                                         \
  int gex_AM_ReplyLong##M(gex_Token_t token, gex_AM_Index_t handler, const void* source_addr, \
                          size_t nbytes, void* dest_addr, gex_Event_t* lc_opt,                \
                          gex_Flags_t flags GASNETI_AM_PARAMETERS##M) {                       \
    GASNETI_AM_ARRAY##M return gasneti_am_reply_long(token, handler, source_addr, nbytes,     \
                                                     dest_addr, lc_opt, flags, M, args);      \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE

#define GASNETI_AM_DEFINE(M)                                                                       \
  GASNETT_INLINE(gex_AM_CommitRequestMedium##M)                                                    \
  void gex_AM_CommitRequestMedium##M(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler,                  \
                                     size_t nbytes GASNETI_AM_PARAMETERS##M) {                     \
    GASNETI_AM_ARRAY##M(void) gasneti_am_commit_request_medium(sd, handler, nbytes, 0, M, args);   \
  }                                                                                                \
  GASNETT_INLINE(gex_AM_CommitRequestMedium##M##_v2)                                               \
  int gex_AM_CommitRequestMedium##M##_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler,              \
                                         size_t nbytes,                                            \
                                         gex_Flags_t commit_flags GASNETI_AM_PARAMETERS##M) {      \
    GASNETI_AM_ARRAY##M return gasneti_am_commit_request_medium(sd, handler, nbytes, commit_flags, \
                                                                M, args);                          \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE

#define GASNETI_AM_DEFINE(M)                                                                       \
  GASNETT_INLINE(gex_AM_CommitRequestLong##M)                                                      \
  void gex_AM_CommitRequestLong##M(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,     \
                                   void* dest_addr GASNETI_AM_PARAMETERS##M) {                     \
    GASNETI_AM_ARRAY##M(void)                                                                      \
        gasneti_am_commit_request_long(sd, handler, nbytes, dest_addr, 0, M, args);                \
  }                                                                                                \
  GASNETT_INLINE(gex_AM_CommitRequestLong##M##_v2)                                                 \
  int gex_AM_CommitRequestLong##M##_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, \
                                       void* dest_addr,                                            \
                                       gex_Flags_t commit_flags GASNETI_AM_PARAMETERS##M) {        \
    GASNETI_AM_ARRAY##M return gasneti_am_commit_request_long(sd, handler, nbytes, dest_addr,      \
                                                              commit_flags, M, args);              \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE

#define GASNETI_AM_DEFINE(M)                                                                       \
  GASNETT_INLINE(gex_AM_CommitReplyMedium##M)                                                      \
  void gex_AM_CommitReplyMedium##M(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler,                    \
                                   size_t nbytes GASNETI_AM_PARAMETERS##M) {                       \
    GASNETI_AM_ARRAY##M(void) gasneti_am_commit_reply_medium(sd, handler, nbytes, 0, M, args);     \
  }                                                                                                \
  GASNETT_INLINE(gex_AM_CommitReplyMedium##M##_v2)                                                 \
  int gex_AM_CommitReplyMedium##M##_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, \
                                       gex_Flags_t commit_flags GASNETI_AM_PARAMETERS##M) {        \
    GASNETI_AM_ARRAY##M return gasneti_am_commit_reply_medium(sd, handler, nbytes, commit_flags,   \
                                                              M, args);                            \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE

#define GASNETI_AM_DEFINE(M)                                                                     \
  GASNETT_INLINE(gex_AM_CommitReplyLong##M)                                                      \
  void gex_AM_CommitReplyLong##M(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,     \
                                 void* dest_addr GASNETI_AM_PARAMETERS##M) {                     \
    GASNETI_AM_ARRAY##M(void)                                                                    \
        gasneti_am_commit_reply_long(sd, handler, nbytes, dest_addr, 0, M, args);                \
  }                                                                                              \
  GASNETT_INLINE(gex_AM_CommitReplyLong##M##_v2)                                                 \
  int gex_AM_CommitReplyLong##M##_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, \
                                     void* dest_addr,                                            \
                                     gex_Flags_t commit_flags GASNETI_AM_PARAMETERS##M) {        \
    GASNETI_AM_ARRAY##M return gasneti_am_commit_reply_long(sd, handler, nbytes, dest_addr,      \
                                                            commit_flags, M, args);              \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE

GASNETT_END_EXTERNC

/* ---------------------------------------------------- calls that count their arguments */

/* The 25th argument. Behind a list of n arguments it is the one with index 24 - n, from 0. */
#define GASNETI_AM_25TH(p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, \
                        p17, p18, p19, p20, p21, p22, p23, p24, n, ...)                        \
  n
#define GASNETI_AM_ARITY3(...)                                                                    \
  GASNETI_AM_25TH(__VA_ARGS__, has_too_many_arguments, has_too_many_arguments,                    \
                  has_too_many_arguments, has_too_many_arguments, has_too_many_arguments, 16, 15, \
                  14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
#define GASNETI_AM_ARITY4(...)                                                                   \
  GASNETI_AM_25TH(__VA_ARGS__, has_too_many_arguments, has_too_many_arguments,                   \
                  has_too_many_arguments, has_too_many_arguments, 16, 15, 14, 13, 12, 11, 10, 9, \
                  8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
#define GASNETI_AM_ARITY5(...)                                                                   \
  GASNETI_AM_25TH(__VA_ARGS__, has_too_many_arguments, has_too_many_arguments,                   \
                  has_too_many_arguments, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, \
                  0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
#define GASNETI_AM_ARITY6(...)                                                                     \
  GASNETI_AM_25TH(__VA_ARGS__, has_too_many_arguments, has_too_many_arguments, 16, 15, 14, 13, 12, \
                  11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
#define GASNETI_AM_ARITY7(...)                                                                    \
  GASNETI_AM_25TH(__VA_ARGS__, has_too_many_arguments, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, \
                  4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
#define GASNETI_AM_ARITY8(...)                                                                    \
  GASNETI_AM_25TH(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, \
                  0, 0, 0, 0, 0, 0)
#define GASNETI_AM_PASTE(name, arity, suffix) name##arity##suffix
#define GASNETI_AM_NAME(name, arity, suffix) GASNETI_AM_PASTE(name, arity, suffix)
#define gex_AM_RequestShort(...) \
  GASNETI_AM_NAME(gex_AM_RequestShort, GASNETI_AM_ARITY4(__VA_ARGS__), )(__VA_ARGS__)
#define gex_AM_RequestMedium(...) \
  GASNETI_AM_NAME(gex_AM_RequestMedium, GASNETI_AM_ARITY7(__VA_ARGS__), )(__VA_ARGS__)
#define gex_AM_RequestLong(...) \
  GASNETI_AM_NAME(gex_AM_RequestLong, GASNETI_AM_ARITY8(__VA_ARGS__), )(__VA_ARGS__)
#define gex_AM_ReplyShort(...) \
  GASNETI_AM_NAME(gex_AM_ReplyShort, GASNETI_AM_ARITY3(__VA_ARGS__), )(__VA_ARGS__)
#define gex_AM_ReplyMedium(...) \
  GASNETI_AM_NAME(gex_AM_ReplyMedium, GASNETI_AM_ARITY6(__VA_ARGS__), )(__VA_ARGS__)
#define gex_AM_ReplyLong(...) \
  GASNETI_AM_NAME(gex_AM_ReplyLong, GASNETI_AM_ARITY7(__VA_ARGS__), )(__VA_ARGS__)
#define gex_AM_CommitRequestMedium(...) \
  GASNETI_AM_NAME(gex_AM_CommitRequestMedium, GASNETI_AM_ARITY3(__VA_ARGS__), )(__VA_ARGS__)
#define gex_AM_CommitRequestMedium_v2(...) \
  GASNETI_AM_NAME(gex_AM_CommitRequestMedium, GASNETI_AM_ARITY4(__VA_ARGS__), _v2)(__VA_ARGS__)
#define gex_AM_CommitRequestLong(...) \
  GASNETI_AM_NAME(gex_AM_CommitRequestLong, GASNETI_AM_ARITY4(__VA_ARGS__), )(__VA_ARGS__)
#define gex_AM_CommitRequestLong_v2(...) \
  GASNETI_AM_NAME(gex_AM_CommitRequestLong, GASNETI_AM_ARITY5(__VA_ARGS__), _v2)(__VA_ARGS__)
#define gex_AM_CommitReplyMedium(...) \
  GASNETI_AM_NAME(gex_AM_CommitReplyMedium, GASNETI_AM_ARITY3(__VA_ARGS__), )(__VA_ARGS__)
#define gex_AM_CommitReplyMedium_v2(...) \
  GASNETI_AM_NAME(gex_AM_CommitReplyMedium, GASNETI_AM_ARITY4(__VA_ARGS__), _v2)(__VA_ARGS__)
#define gex_AM_CommitReplyLong(...) \
  GASNETI_AM_NAME(gex_AM_CommitReplyLong, GASNETI_AM_ARITY4(__VA_ARGS__), )(__VA_ARGS__)
#define gex_AM_CommitReplyLong_v2(...) \
  GASNETI_AM_NAME(gex_AM_CommitReplyLong, GASNETI_AM_ARITY5(__VA_ARGS__), _v2)(__VA_ARGS__)

#endif /* GASNETI_AM_H */

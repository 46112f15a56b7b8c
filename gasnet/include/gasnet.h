/* gasnet.h: GASNet-1 on top of GASNet-EX. Vector calls and collectives have separate headers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _INCLUDED_GASNET_H
#define _INCLUDED_GASNET_H 1

#include <gasnetex.h>

typedef gex_Rank_t gasnet_node_t;
typedef gex_Token_t gasnet_token_t;
typedef gex_AM_Index_t gasnet_handler_t;
typedef gex_AM_Arg_t gasnet_handlerarg_t;
typedef gex_RMA_Value_t gasnet_register_value_t;
#define SIZEOF_GASNET_REGISTER_VALUE_T SIZEOF_GEX_RMA_VALUE_T
typedef gex_Event_t gasnet_handle_t;
#define GASNET_INVALID_HANDLE GEX_EVENT_INVALID
struct gasneti_value_get;
typedef struct gasneti_value_get* gasnet_valget_handle_t;

/* Index 0: the library chooses an index and writes it into the entry. */
typedef struct {
  gex_AM_Index_t index;
  gex_AM_Fn_t fnptr;
} gasnet_handlerentry_t;

typedef gex_HSL_t gasnet_hsl_t;
#define GASNET_HSL_INITIALIZER GEX_HSL_INITIALIZER
#define gasnet_hsl_init(hsl) gex_HSL_Init(hsl)
#define gasnet_hsl_destroy(hsl) gex_HSL_Destroy(hsl)
#define gasnet_hsl_lock(hsl) gex_HSL_Lock(hsl)
#define gasnet_hsl_unlock(hsl) gex_HSL_Unlock(hsl)
#define gasnet_hsl_trylock(hsl) gex_HSL_Trylock(hsl)

GASNETT_BEGIN_EXTERNC

/* ------------------------------------------------------------------------------------------ job */

extern int gasnet_init(int* argc, char*** argv);
#ifdef GASNET_SEGMENT_EVERYTHING
extern int gasneti_init_everything(int* argc, char*** argv);
#define gasnet_init gasneti_init_everything
#endif
extern int gasnet_attach(gasnet_handlerentry_t* table, int numentries, uintptr_t segsize,
                         uintptr_t minheapoffset);
extern void gasnet_QueryGexObjects(gex_Client_t* client_p, gex_EP_t* endpoint_p, gex_TM_t* tm_p,
                                   gex_Segment_t* segment_p);
#define gasnet_mynode() gex_System_QueryJobRank()
#define gasnet_nodes() gex_System_QueryJobSize()
#define gasnet_hold_interrupts() ((void)0)
#define gasnet_resume_interrupts() ((void)0)

/** The team of the client that uses GASNet-1. */
extern gex_TM_t gasneti_legacy_team(void);

/* ------------------------------------------------------------------------------ active messages */

#define gasnet_AMMaxArgs() ((size_t)gex_AM_MaxArgs())
extern size_t gasnet_AMMaxMedium(void);
#define gasnet_AMMaxLongRequest() gex_AM_LUBRequestLong()
#define gasnet_AMMaxLongReply() gex_AM_LUBReplyLong()
extern int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t* srcindex);

/** Ends the program if a call has another number of arguments than its parameter says. */
extern void gasneti_am_count_mismatch(const char* name, int said, int given) GASNETT_NORETURN;

/* Each kind has two forms: one with the number of arguments in its name, and one with the number as
 * an argument, which is checked. */
#define GASNETI_AM_DEFINE(M)                                                                   \
  GASNETT_INLINE(gasnet_AMRequestShort##M)                                                     \
  int gasnet_AMRequestShort##M(gasnet_node_t dest,                                             \
                               gasnet_handler_t handler GASNETI_AM_PARAMETERS##M) {            \
    return gex_AM_RequestShort##M(gasneti_legacy_team(), dest, handler, 0 GASNETI_AM_PASS##M); \
  }                                                                                            \
  GASNETT_INLINE(gasneti_AMRequestShort##M##_counted)                                          \
  int gasneti_AMRequestShort##M##_counted(gasnet_node_t dest, gasnet_handler_t handler,        \
                                          int count GASNETI_AM_PARAMETERS##M) {                \
    if (count != M) gasneti_am_count_mismatch("gasnet_AMRequestShort", count, M);              \
    return gasnet_AMRequestShort##M(dest, handler GASNETI_AM_PASS##M);                         \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE
#define gasnet_AMRequestShort(...) \
  GASNETI_AM_NAME(gasneti_AMRequestShort, GASNETI_AM_ARITY3(__VA_ARGS__), _counted)(__VA_ARGS__)

#define GASNETI_AM_DEFINE(M)                                                                     \
  GASNETT_INLINE(gasnet_AMRequestMedium##M)                                                      \
  int gasnet_AMRequestMedium##M(gasnet_node_t dest, gasnet_handler_t handler, void* source_addr, \
                                size_t nbytes GASNETI_AM_PARAMETERS##M) {                        \
    return gex_AM_RequestMedium##M(gasneti_legacy_team(), dest, handler, source_addr, nbytes,    \
                                   GEX_EVENT_NOW, 0 GASNETI_AM_PASS##M);                         \
  }                                                                                              \
  GASNETT_INLINE(gasneti_AMRequestMedium##M##_counted)                                           \
  int gasneti_AMRequestMedium##M##_counted(gasnet_node_t dest, gasnet_handler_t handler,         \
                                           void* source_addr, size_t nbytes,                     \
                                           int count GASNETI_AM_PARAMETERS##M) {                 \
    if (count != M) gasneti_am_count_mismatch("gasnet_AMRequestMedium", count, M);               \
    return gasnet_AMRequestMedium##M(dest, handler, source_addr, nbytes GASNETI_AM_PASS##M);     \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE
#define gasnet_AMRequestMedium(...) \
  GASNETI_AM_NAME(gasneti_AMRequestMedium, GASNETI_AM_ARITY5(__VA_ARGS__), _counted)(__VA_ARGS__)

#define GASNETI_AM_DEFINE(M)                                                                   \
  GASNETT_INLINE(gasnet_AMRequestLong##M)                                                      \
  int gasnet_AMRequestLong##M(gasnet_node_t dest, gasnet_handler_t handler, void* source_addr, \
                              size_t nbytes, void* dest_addr GASNETI_AM_PARAMETERS##M) {       \
    return gex_AM_RequestLong##M(gasneti_legacy_team(), dest, handler, source_addr, nbytes,    \
                                 dest_addr, GEX_EVENT_NOW, 0 GASNETI_AM_PASS##M);              \
  }                                                                                            \
  GASNETT_INLINE(gasneti_AMRequestLong##M##_counted)                                           \
  int gasneti_AMRequestLong##M##_counted(gasnet_node_t dest, gasnet_handler_t handler,         \
                                         void* source_addr, size_t nbytes, void* dest_addr,    \
                                         int count GASNETI_AM_PARAMETERS##M) {                 \
    if (count != M) gasneti_am_count_mismatch("gasnet_AMRequestLong", count, M);               \
    return gasnet_AMRequestLong##M(dest, handler, source_addr, nbytes,                         \
                                   dest_addr GASNETI_AM_PASS##M);                              \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE
#define gasnet_AMRequestLong(...) \
  GASNETI_AM_NAME(gasneti_AMRequestLong, GASNETI_AM_ARITY6(__VA_ARGS__), _counted)(__VA_ARGS__)

#define GASNETI_AM_DEFINE(M)                                                                     \
  GASNETT_INLINE(gasnet_AMRequestLongAsync##M)                                                   \
  int gasnet_AMRequestLongAsync##M(gasnet_node_t dest, gasnet_handler_t handler,                 \
                                   void* source_addr, size_t nbytes,                             \
                                   void* dest_addr GASNETI_AM_PARAMETERS##M) {                   \
    return gex_AM_RequestLong##M(gasneti_legacy_team(), dest, handler, source_addr, nbytes,      \
                                 dest_addr, GEX_EVENT_NOW, 0 GASNETI_AM_PASS##M);                \
  }                                                                                              \
  GASNETT_INLINE(gasneti_AMRequestLongAsync##M##_counted)                                        \
  int gasneti_AMRequestLongAsync##M##_counted(gasnet_node_t dest, gasnet_handler_t handler,      \
                                              void* source_addr, size_t nbytes, void* dest_addr, \
                                              int count GASNETI_AM_PARAMETERS##M) {              \
    if (count != M) gasneti_am_count_mismatch("gasnet_AMRequestLongAsync", count, M);            \
    return gasnet_AMRequestLongAsync##M(dest, handler, source_addr, nbytes,                      \
                                        dest_addr GASNETI_AM_PASS##M);                           \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE
#define gasnet_AMRequestLongAsync(...) \
  GASNETI_AM_NAME(gasneti_AMRequestLongAsync, GASNETI_AM_ARITY6(__VA_ARGS__), _counted)(__VA_ARGS__)

#define GASNETI_AM_DEFINE(M)                                                            \
  GASNETT_INLINE(gasnet_AMReplyShort##M)                                                \
  int gasnet_AMReplyShort##M(gasnet_token_t token,                                      \
                             gasnet_handler_t handler GASNETI_AM_PARAMETERS##M) {       \
    return gex_AM_ReplyShort##M(token, handler, 0 GASNETI_AM_PASS##M);                  \
  }                                                                                     \
  GASNETT_INLINE(gasneti_AMReplyShort##M##_counted)                                     \
  int gasneti_AMReplyShort##M##_counted(gasnet_token_t token, gasnet_handler_t handler, \
                                        int count GASNETI_AM_PARAMETERS##M) {           \
    if (count != M) gasneti_am_count_mismatch("gasnet_AMReplyShort", count, M);         \
    return gasnet_AMReplyShort##M(token, handler GASNETI_AM_PASS##M);                   \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE
#define gasnet_AMReplyShort(...) \
  GASNETI_AM_NAME(gasneti_AMReplyShort, GASNETI_AM_ARITY3(__VA_ARGS__), _counted)(__VA_ARGS__)

#define GASNETI_AM_DEFINE(M)                                                                     \
  GASNETT_INLINE(gasnet_AMReplyMedium##M)                                                        \
  int gasnet_AMReplyMedium##M(gasnet_token_t token, gasnet_handler_t handler, void* source_addr, \
                              size_t nbytes GASNETI_AM_PARAMETERS##M) {                          \
    return gex_AM_ReplyMedium##M(token, handler, source_addr, nbytes, GEX_EVENT_NOW,             \
                                 0 GASNETI_AM_PASS##M);                                          \
  }                                                                                              \
  GASNETT_INLINE(gasneti_AMReplyMedium##M##_counted)                                             \
  int gasneti_AMReplyMedium##M##_counted(gasnet_token_t token, gasnet_handler_t handler,         \
                                         void* source_addr, size_t nbytes,                       \
                                         int count GASNETI_AM_PARAMETERS##M) {                   \
    if (count != M) gasneti_am_count_mismatch("gasnet_AMReplyMedium", count, M);                 \
    return gasnet_AMReplyMedium##M(token, handler, source_addr, nbytes GASNETI_AM_PASS##M);      \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE
#define gasnet_AMReplyMedium(...) \
  GASNETI_AM_NAME(gasneti_AMReplyMedium, GASNETI_AM_ARITY5(__VA_ARGS__), _counted)(__VA_ARGS__)

#define GASNETI_AM_DEFINE(M)                                                                   \
  GASNETT_INLINE(gasnet_AMReplyLong##M)                                                        \
  int gasnet_AMReplyLong##M(gasnet_token_t token, gasnet_handler_t handler, void* source_addr, \
                            size_t nbytes, void* dest_addr GASNETI_AM_PARAMETERS##M) {         \
    return gex_AM_ReplyLong##M(token, handler, source_addr, nbytes, dest_addr, GEX_EVENT_NOW,  \
                               0 GASNETI_AM_PASS##M);                                          \
  }                                                                                            \
  GASNETT_INLINE(gasneti_AMReplyLong##M##_counted)                                             \
  int gasneti_AMReplyLong##M##_counted(gasnet_token_t token, gasnet_handler_t handler,         \
                                       void* source_addr, size_t nbytes, void* dest_addr,      \
                                       int count GASNETI_AM_PARAMETERS##M) {                   \
    if (count != M) gasneti_am_count_mismatch("gasnet_AMReplyLong", count, M);                 \
    return gasnet_AMReplyLong##M(token, handler, source_addr, nbytes,                          \
                                 dest_addr GASNETI_AM_PASS##M);                                \
  }
GASNETI_AM_FOR_EACH(GASNETI_AM_DEFINE)
#undef GASNETI_AM_DEFINE
#define gasnet_AMReplyLong(...) \
  GASNETI_AM_NAME(gasneti_AMReplyLong, GASNETI_AM_ARITY6(__VA_ARGS__), _counted)(__VA_ARGS__)

/* -------------------------------------------------------------------------------- puts and gets */

extern void gasnet_put(gasnet_node_t node, void* dest, void* src, size_t nbytes);
extern void gasnet_put_bulk(gasnet_node_t node, void* dest, void* src, size_t nbytes);
extern gasnet_handle_t gasnet_put_nb(gasnet_node_t node, void* dest, void* src, size_t nbytes);
extern gasnet_handle_t gasnet_put_nb_bulk(gasnet_node_t node, void* dest, void* src, size_t nbytes);
extern void gasnet_put_nbi(gasnet_node_t node, void* dest, void* src, size_t nbytes);
extern void gasnet_put_nbi_bulk(gasnet_node_t node, void* dest, void* src, size_t nbytes);
extern void gasnet_get(void* dest, gasnet_node_t node, void* src, size_t nbytes);
extern void gasnet_get_bulk(void* dest, gasnet_node_t node, void* src, size_t nbytes);
extern gasnet_handle_t gasnet_get_nb(void* dest, gasnet_node_t node, void* src, size_t nbytes);
extern gasnet_handle_t gasnet_get_nb_bulk(void* dest, gasnet_node_t node, void* src, size_t nbytes);
extern void gasnet_get_nbi(void* dest, gasnet_node_t node, void* src, size_t nbytes);
extern void gasnet_get_nbi_bulk(void* dest, gasnet_node_t node, void* src, size_t nbytes);
extern void gasnet_memset(gasnet_node_t node, void* dest, int val, size_t nbytes);
extern gasnet_handle_t gasnet_memset_nb(gasnet_node_t node, void* dest, int val, size_t nbytes);
extern void gasnet_memset_nbi(gasnet_node_t node, void* dest, int val, size_t nbytes);
extern void gasnet_put_val(gasnet_node_t node, void* dest, gasnet_register_value_t value,
                           size_t nbytes);
extern gasnet_handle_t gasnet_put_nb_val(gasnet_node_t node, void* dest,
                                         gasnet_register_value_t value, size_t nbytes);
extern void gasnet_put_nbi_val(gasnet_node_t node, void* dest, gasnet_register_value_t value,
                               size_t nbytes);
extern gasnet_register_value_t gasnet_get_val(gasnet_node_t node, void* src, size_t nbytes);
extern gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t node, void* src, size_t nbytes);
extern gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle);
extern void gasnet_wait_syncnb(gasnet_handle_t handle);
extern void gasnet_wait_syncnb_some(gasnet_handle_t* phandle, size_t numhandles);
extern void gasnet_wait_syncnb_all(gasnet_handle_t* phandle, size_t numhandles);
extern int gasnet_try_syncnb(gasnet_handle_t handle);
extern int gasnet_try_syncnb_some(gasnet_handle_t* phandle, size_t numhandles);
extern int gasnet_try_syncnb_all(gasnet_handle_t* phandle, size_t numhandles);
extern int gasnet_try_syncnb_nopoll(gasnet_handle_t handle);
extern int gasnet_try_syncnb_some_nopoll(gasnet_handle_t* phandle, size_t numhandles);
extern int gasnet_try_syncnb_all_nopoll(gasnet_handle_t* phandle, size_t numhandles);
extern void gasnet_wait_syncnbi_gets(void);
extern void gasnet_wait_syncnbi_puts(void);
extern void gasnet_wait_syncnbi_all(void);
extern int gasnet_try_syncnbi_gets(void);
extern int gasnet_try_syncnbi_puts(void);
extern int gasnet_try_syncnbi_all(void);
extern void gasnet_begin_nbi_accessregion(void);
extern gasnet_handle_t gasnet_end_nbi_accessregion(void);

GASNETT_END_EXTERNC

#endif /* _INCLUDED_GASNET_H */

/* portals4.h: the Portals 4.3 network programming interface.
 *
 * Types, constants and functions of chapter 3 of the Portals 4.3 specification, plus two
 * extensions (PtlTriggeredMEAppend, PtlTriggeredMEUnlink). Compiles as C11 and as C++11 or later.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef PORTALS4_H
#define PORTALS4_H

#include <limits.h>
#include <stdint.h>
#include <sys/uio.h>

#define PTL_API __attribute__((visibility("default")))

#ifdef __cplusplus
#define PTL_NOEXCEPT noexcept
/* A fixed underlying type makes every 32-bit value a valid one, so that a wrong argument can be
 * looked at and refused. In C the type of these enumerations is unsigned int anyway. */
#define PTL_ENUM enum : unsigned int
extern "C" {
#else
#define PTL_NOEXCEPT
#define PTL_ENUM enum
#endif

/* ------------------------------------------------------------------ version (3.2.1) */

#define PTL_MAJOR_VERSION 4
#define PTL_MINOR_VERSION 3

/* ------------------------------------------------------------------ base types (3.3) */

typedef uint64_t ptl_size_t; /* sizes and offsets in bytes, counts */
#define PTL_SIZE_MAX UINT64_MAX

/* One scalar type serves all handles, so that PTL_INVALID_HANDLE, PTL_EQ_NONE and PTL_CT_NONE can
 * be assigned to and compared with any of them (3.3.2). */
typedef uint64_t ptl_handle_any_t;
typedef ptl_handle_any_t ptl_handle_ni_t;
typedef ptl_handle_any_t ptl_handle_md_t;
typedef ptl_handle_any_t ptl_handle_le_t;
typedef ptl_handle_any_t ptl_handle_me_t;
typedef ptl_handle_any_t ptl_handle_eq_t;
typedef ptl_handle_any_t ptl_handle_ct_t;

#define PTL_INVALID_HANDLE UINT64_C(0xffffffffffffffff)
#define PTL_EQ_NONE UINT64_C(0xfffffffffffffffe)
#define PTL_CT_NONE UINT64_C(0xfffffffffffffffd)

typedef uint32_t ptl_pt_index_t; /* index into a portal table (3.3.3) */
#define PTL_PT_ANY UINT32_C(0xffffffff)

typedef uint64_t ptl_match_bits_t; /* 3.3.4 */
typedef uint64_t ptl_hdr_data_t;   /* out-of-band data of a put or atomic (3.15.2) */

typedef uint32_t ptl_interface_t; /* 3.3.5; `ptl_info` lists the interfaces of a machine */
#define PTL_IFACE_DEFAULT UINT32_C(0xffffffff)

typedef uint32_t ptl_nid_t;  /* node identifier (3.3.6) */
typedef uint32_t ptl_pid_t;  /* process identifier within a node */
typedef uint32_t ptl_rank_t; /* logical process identifier */
typedef uint32_t ptl_uid_t;  /* usage identifier */
#define PTL_NID_ANY UINT32_C(0xffffffff)
#define PTL_PID_ANY UINT32_C(0xffffffff)
#define PTL_RANK_ANY UINT32_C(0xffffffff)
#define PTL_UID_ANY UINT32_C(0xffffffff)
/* A requested pid is less than PTL_PID_MAX (3.6.2). */
#define PTL_PID_MAX UINT32_C(65535)

typedef unsigned int ptl_time_t; /* milliseconds (3.13.9) */
#define PTL_TIME_FOREVER UINT_MAX

/* Status registers (3.3.7). portals4_ext.h names further registers of this implementation. */
typedef unsigned int ptl_sr_index_t;
typedef int64_t ptl_sr_value_t;
enum {
  PTL_SR_DROP_COUNT = 0,            /* messages dropped */
  PTL_SR_PERMISSION_VIOLATIONS = 1, /* messages refused by the usage identifier of an entry */
  PTL_SR_OPERATION_VIOLATIONS = 2   /* messages refused by the allowed operations of an entry */
};

/* ------------------------------------------------------------------ return codes (table 3-7) */

#define PTL_OK 0               /* success */
#define PTL_FAIL 1             /* error during initialization */
#define PTL_ARG_INVALID 2      /* invalid argument */
#define PTL_CT_NONE_REACHED 3  /* timeout before any counting event reached its test */
#define PTL_EQ_DROPPED 4       /* an event was returned, at least one before it was lost */
#define PTL_EQ_EMPTY 5         /* no event available */
#define PTL_IN_USE 6           /* the object has pending operations */
#define PTL_ABORTED 7          /* PtlAbort was called */
#define PTL_IGNORED 8          /* the logical map was not set */
#define PTL_LIST_TOO_LONG 9    /* max_list_size reached */
#define PTL_NO_INIT 10         /* the library or the interface is not initialized */
#define PTL_NO_SPACE 11        /* a limit or the memory is exhausted */
#define PTL_PID_IN_USE 12      /* another process holds the requested pid */
#define PTL_PT_FULL 13         /* no free portal table entry */
#define PTL_PT_EQ_NEEDED 14    /* flow control needs an event queue */
#define PTL_PT_IN_USE 15       /* the portal table entry is allocated, or is in use */
#define PTL_INTERRUPTED 16     /* deprecated: never returned, use PTL_ABORTED */

/* ------------------------------------------------------------------ network interfaces (3.6) */

/* Options of PtlNIInit (3.6.2): one of each pair. */
#define PTL_NI_MATCHING (1u << 0)
#define PTL_NI_NO_MATCHING (1u << 1)
#define PTL_NI_LOGICAL (1u << 2)
#define PTL_NI_PHYSICAL (1u << 3)

/* Bits of ptl_ni_limits_t::features (3.6.1). */
#define PTL_TARGET_BIND_INACCESSIBLE (1u << 0)
#define PTL_TOTAL_DATA_ORDERING (1u << 1)
#define PTL_COHERENT_ATOMICS (1u << 2)

/* Limits of a logical network interface (3.6.1). */
typedef struct {
  int max_entries;                   /* list entries or match list entries */
  int max_unexpected_headers;        /* headers kept in unexpected lists */
  int max_mds;                       /* memory descriptors */
  int max_eqs;                       /* event queues */
  int max_cts;                       /* counting events */
  int max_pt_index;                  /* largest portal table index, at least 249 */
  int max_iovecs;                    /* elements of a PTL_IOVEC array */
  int max_list_size;                 /* entries on one list of one portal table entry */
  int max_triggered_ops;             /* pending triggered operations */
  ptl_size_t max_msg_size;           /* bytes of one put, get or reply */
  ptl_size_t max_atomic_size;        /* bytes of one PtlAtomic */
  ptl_size_t max_fetch_atomic_size;  /* bytes of one PtlFetchAtomic or PtlSwap */
  ptl_size_t max_waw_ordered_size;   /* bytes with ordered data, write (or read) after write */
  ptl_size_t max_war_ordered_size;   /* bytes with ordered data, write after read */
  ptl_size_t max_volatile_size;      /* bytes copied at the call from a PTL_MD_VOLATILE MD */
  unsigned int features;             /* PTL_TARGET_BIND_INACCESSIBLE and so on */
} ptl_ni_limits_t;

/* ------------------------------------------------------------------ portal table (3.7) */

/* Options of PtlPTAlloc (3.7.1). */
#define PTL_PT_ONLY_USE_ONCE (1u << 0)
#define PTL_PT_ONLY_TRUNCATE (1u << 1)
#define PTL_PT_FLOWCTRL (1u << 2)
#define PTL_PT_ALLOC_DISABLED (1u << 3)

/* ------------------------------------------------------------------ processes (3.9) */

typedef union {
  struct {
    ptl_nid_t nid;
    ptl_pid_t pid;
  } phys;
  ptl_rank_t rank;
} ptl_process_t;

/* ------------------------------------------------------------------ memory descriptors (3.10) */

typedef struct iovec ptl_iovec_t; /* iov_base, iov_len in bytes (3.10.2) */

/* MD, LE and ME: `start` points to an array of ptl_iovec_t, `length` is its number of elements. */
#define PTL_IOVEC (1u << 0)

/* Options of an MD (3.10.1). */
#define PTL_MD_EVENT_SEND_DISABLE (1u << 1)
#define PTL_MD_EVENT_SUCCESS_DISABLE (1u << 2)
#define PTL_MD_EVENT_CT_SEND (1u << 3)
#define PTL_MD_EVENT_CT_REPLY (1u << 4)
#define PTL_MD_EVENT_CT_ACK (1u << 5)
#define PTL_MD_EVENT_CT_BYTES (1u << 6)
#define PTL_MD_UNORDERED (1u << 7)
#define PTL_MD_VOLATILE (1u << 8)
#define PTL_MD_UNRELIABLE (1u << 9)

typedef struct {
  void* start;               /* first byte, or the PTL_IOVEC array */
  ptl_size_t length;         /* bytes, or elements of the array */
  unsigned int options;      /* PTL_MD_*, PTL_IOVEC */
  ptl_handle_eq_t eq_handle; /* full events, or PTL_EQ_NONE */
  ptl_handle_ct_t ct_handle; /* counting events, or PTL_CT_NONE */
} ptl_md_t;

/* ------------------------------------------------------------------ list entries (3.11, 3.12) */

typedef PTL_ENUM {
  PTL_PRIORITY_LIST = 0,
  PTL_OVERFLOW_LIST = 1
} ptl_list_t;

typedef PTL_ENUM {
  PTL_SEARCH_ONLY = 0,
  PTL_SEARCH_DELETE = 1
} ptl_search_op_t;

/* Options of an ME (3.12.1). */
#define PTL_ME_OP_PUT (1u << 1)
#define PTL_ME_OP_GET (1u << 2)
#define PTL_ME_USE_ONCE (1u << 3)
#define PTL_ME_UNEXPECTED_HDR_DISABLE (1u << 4)
#define PTL_ME_IS_ACCESSIBLE (1u << 5)
#define PTL_ME_EVENT_LINK_DISABLE (1u << 6)
#define PTL_ME_EVENT_COMM_DISABLE (1u << 7)
#define PTL_ME_EVENT_FLOWCTRL_DISABLE (1u << 8)
#define PTL_ME_EVENT_SUCCESS_DISABLE (1u << 9)
#define PTL_ME_EVENT_OVER_DISABLE (1u << 10)
#define PTL_ME_EVENT_UNLINK_DISABLE (1u << 11)
#define PTL_ME_EVENT_CT_COMM (1u << 12)
#define PTL_ME_EVENT_CT_OVERFLOW (1u << 13)
#define PTL_ME_EVENT_CT_BYTES (1u << 14)
#define PTL_ME_MANAGE_LOCAL (1u << 15)
#define PTL_ME_NO_TRUNCATE (1u << 16)
#define PTL_ME_MAY_ALIGN (1u << 17)
#define PTL_ME_LOCAL_INC_UH_RLENGTH (1u << 18)

/* Options of an LE (3.11.1): the same bits. */
#define PTL_LE_OP_PUT PTL_ME_OP_PUT
#define PTL_LE_OP_GET PTL_ME_OP_GET
#define PTL_LE_USE_ONCE PTL_ME_USE_ONCE
#define PTL_LE_UNEXPECTED_HDR_DISABLE PTL_ME_UNEXPECTED_HDR_DISABLE
#define PTL_LE_IS_ACCESSIBLE PTL_ME_IS_ACCESSIBLE
#define PTL_LE_EVENT_LINK_DISABLE PTL_ME_EVENT_LINK_DISABLE
#define PTL_LE_EVENT_COMM_DISABLE PTL_ME_EVENT_COMM_DISABLE
#define PTL_LE_EVENT_FLOWCTRL_DISABLE PTL_ME_EVENT_FLOWCTRL_DISABLE
#define PTL_LE_EVENT_SUCCESS_DISABLE PTL_ME_EVENT_SUCCESS_DISABLE
#define PTL_LE_EVENT_OVER_DISABLE PTL_ME_EVENT_OVER_DISABLE
#define PTL_LE_EVENT_UNLINK_DISABLE PTL_ME_EVENT_UNLINK_DISABLE
#define PTL_LE_EVENT_CT_COMM PTL_ME_EVENT_CT_COMM
#define PTL_LE_EVENT_CT_OVERFLOW PTL_ME_EVENT_CT_OVERFLOW
#define PTL_LE_EVENT_CT_BYTES PTL_ME_EVENT_CT_BYTES

/* Deprecated: removed in Portals 4.3. They still compile and have no effect. */
#define PTL_ME_ACK_DISABLE 0u
#define PTL_LE_ACK_DISABLE 0u

typedef struct {
  void* start;               /* first byte, or the PTL_IOVEC array */
  ptl_size_t length;         /* bytes, or elements of the array */
  ptl_handle_ct_t ct_handle; /* counting events, or PTL_CT_NONE */
  ptl_uid_t uid;             /* who may access the entry, or PTL_UID_ANY */
  unsigned int options;      /* PTL_LE_*, PTL_IOVEC */
} ptl_le_t;

/* The first fields are those of ptl_le_t, at the same offsets. */
typedef struct {
  void* start;
  ptl_size_t length;
  ptl_handle_ct_t ct_handle;
  ptl_uid_t uid;
  unsigned int options;         /* PTL_ME_*, PTL_IOVEC */
  ptl_process_t match_id;       /* initiators to accept; fields may be PTL_*_ANY */
  ptl_match_bits_t match_bits;  /* match if ((incoming ^ match_bits) & ~ignore_bits) == 0 */
  ptl_match_bits_t ignore_bits;
  ptl_size_t min_free;          /* bytes; unlink when fewer remain (PTL_ME_MANAGE_LOCAL only) */
} ptl_me_t;

/* ------------------------------------------------------------------ operations (3.15) */

typedef PTL_ENUM {
  PTL_NO_ACK_REQ = 0, /* no acknowledgment */
  PTL_ACK_REQ = 1,    /* full acknowledgment event, counted as well if the MD says so */
  PTL_CT_ACK_REQ = 2, /* the acknowledgment is only counted */
  PTL_OC_ACK_REQ = 3  /* as PTL_CT_ACK_REQ; completion at the target is all it says */
} ptl_ack_req_t;

typedef PTL_ENUM {
  PTL_MIN = 0,
  PTL_MAX = 1,
  PTL_SUM = 2,
  PTL_DIFF = 3,
  PTL_PROD = 4,
  PTL_LOR = 5,
  PTL_LAND = 6,
  PTL_BOR = 7,
  PTL_BAND = 8,
  PTL_LXOR = 9,
  PTL_BXOR = 10,
  PTL_SWAP = 11,
  PTL_CSWAP = 12,
  PTL_CSWAP_NE = 13,
  PTL_CSWAP_LE = 14,
  PTL_CSWAP_LT = 15,
  PTL_CSWAP_GE = 16,
  PTL_CSWAP_GT = 17,
  PTL_MSWAP = 18
} ptl_op_t;

typedef PTL_ENUM {
  PTL_INT8_T = 0,
  PTL_UINT8_T = 1,
  PTL_INT16_T = 2,
  PTL_UINT16_T = 3,
  PTL_INT32_T = 4,
  PTL_UINT32_T = 5,
  PTL_INT64_T = 6,
  PTL_UINT64_T = 7,
  PTL_FLOAT = 8,
  PTL_FLOAT_COMPLEX = 9,
  PTL_DOUBLE = 10,
  PTL_DOUBLE_COMPLEX = 11,
  PTL_LONG_DOUBLE = 12,
  PTL_LONG_DOUBLE_COMPLEX = 13
} ptl_datatype_t;

/* ------------------------------------------------------------------ events (3.13, 3.14) */

typedef PTL_ENUM {
  PTL_EVENT_GET = 0,
  PTL_EVENT_GET_OVERFLOW = 1,
  PTL_EVENT_PUT = 2,
  PTL_EVENT_PUT_OVERFLOW = 3,
  PTL_EVENT_ATOMIC = 4,
  PTL_EVENT_ATOMIC_OVERFLOW = 5,
  PTL_EVENT_FETCH_ATOMIC = 6,
  PTL_EVENT_FETCH_ATOMIC_OVERFLOW = 7,
  PTL_EVENT_REPLY = 8,
  PTL_EVENT_SEND = 9,
  PTL_EVENT_ACK = 10,
  PTL_EVENT_PT_DISABLED = 11,
  PTL_EVENT_LINK = 12,
  PTL_EVENT_AUTO_UNLINK = 13,
  PTL_EVENT_AUTO_FREE = 14,
  PTL_EVENT_SEARCH = 15,
  PTL_EVENT_ERROR = 16
} ptl_event_kind_t;

typedef PTL_ENUM {
  PTL_NI_OK = 0,
  PTL_NI_UNDELIVERABLE = 1,
  PTL_NI_PT_DISABLED = 2,
  PTL_NI_DROPPED = 3,
  PTL_NI_PERM_VIOLATION = 4,
  PTL_NI_OP_VIOLATION = 5,
  PTL_NI_SEGV = 6,
  PTL_NI_NO_MATCH = 7
} ptl_ni_fail_t;

typedef struct {
  void* start;
  void* user_ptr;
  ptl_hdr_data_t hdr_data;
  ptl_match_bits_t match_bits;
  ptl_size_t rlength;
  ptl_size_t mlength;
  ptl_size_t remote_offset;
  ptl_process_t initiator;
  ptl_uid_t uid;
  ptl_pt_index_t pt_index;
  ptl_event_kind_t type;
  ptl_list_t ptl_list;
  ptl_ni_fail_t ni_fail_type;
  ptl_op_t atomic_operation;
  ptl_datatype_t atomic_type;
} ptl_event_t;

typedef struct {
  ptl_size_t success; /* successful events, or bytes */
  ptl_size_t failure; /* failed events */
} ptl_ct_event_t;

/* ------------------------------------------------------------------ functions */

PTL_API int PtlInit(void) PTL_NOEXCEPT;
PTL_API void PtlFini(void) PTL_NOEXCEPT;
PTL_API void PtlAbort(void) PTL_NOEXCEPT;

PTL_API int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid,
                      const ptl_ni_limits_t* desired, ptl_ni_limits_t* actual,
                      ptl_handle_ni_t* ni_handle) PTL_NOEXCEPT;
PTL_API int PtlNIFini(ptl_handle_ni_t ni_handle) PTL_NOEXCEPT;
PTL_API int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register,
                        ptl_sr_value_t* status) PTL_NOEXCEPT;
PTL_API int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t* ni_handle) PTL_NOEXCEPT;
PTL_API int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size,
                      const ptl_process_t* mapping) PTL_NOEXCEPT;
PTL_API int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t* mapping,
                      ptl_size_t* actual_map_size) PTL_NOEXCEPT;

PTL_API int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle,
                       ptl_pt_index_t pt_index_req, ptl_pt_index_t* pt_index) PTL_NOEXCEPT;
PTL_API int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) PTL_NOEXCEPT;
PTL_API int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) PTL_NOEXCEPT;
PTL_API int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) PTL_NOEXCEPT;

PTL_API int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t* uid) PTL_NOEXCEPT;
PTL_API int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t* id) PTL_NOEXCEPT;
PTL_API int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t* id) PTL_NOEXCEPT;

PTL_API int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t* md,
                      ptl_handle_md_t* md_handle) PTL_NOEXCEPT;
PTL_API int PtlMDRelease(ptl_handle_md_t md_handle) PTL_NOEXCEPT;

PTL_API int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le,
                        ptl_list_t ptl_list, void* user_ptr,
                        ptl_handle_le_t* le_handle) PTL_NOEXCEPT;
PTL_API int PtlLEUnlink(ptl_handle_le_t le_handle) PTL_NOEXCEPT;
PTL_API int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le,
                        ptl_search_op_t ptl_search_op, void* user_ptr) PTL_NOEXCEPT;

PTL_API int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me,
                        ptl_list_t ptl_list, void* user_ptr,
                        ptl_handle_me_t* me_handle) PTL_NOEXCEPT;
PTL_API int PtlMEUnlink(ptl_handle_me_t me_handle) PTL_NOEXCEPT;
PTL_API int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me,
                        ptl_search_op_t ptl_search_op, void* user_ptr) PTL_NOEXCEPT;

PTL_API int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count,
                       ptl_handle_eq_t* eq_handle) PTL_NOEXCEPT;
PTL_API int PtlEQFree(ptl_handle_eq_t eq_handle) PTL_NOEXCEPT;
PTL_API int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t* event) PTL_NOEXCEPT;
PTL_API int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t* event) PTL_NOEXCEPT;
PTL_API int PtlEQPoll(const ptl_handle_eq_t* eq_handles, unsigned int size, ptl_time_t timeout,
                      ptl_event_t* event, unsigned int* which) PTL_NOEXCEPT;

PTL_API int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t* ct_handle) PTL_NOEXCEPT;
PTL_API int PtlCTFree(ptl_handle_ct_t ct_handle) PTL_NOEXCEPT;
PTL_API int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle) PTL_NOEXCEPT;
PTL_API int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t* event) PTL_NOEXCEPT;
PTL_API int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test,
                      ptl_ct_event_t* event) PTL_NOEXCEPT;
PTL_API int PtlCTPoll(const ptl_handle_ct_t* ct_handles, const ptl_size_t* tests,
                      unsigned int size, ptl_time_t timeout, ptl_ct_event_t* event,
                      unsigned int* which) PTL_NOEXCEPT;
PTL_API int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct) PTL_NOEXCEPT;
PTL_API int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment) PTL_NOEXCEPT;

PTL_API int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                   ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                   ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                   ptl_hdr_data_t hdr_data) PTL_NOEXCEPT;
PTL_API int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                   ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                   ptl_size_t remote_offset, void* user_ptr) PTL_NOEXCEPT;
PTL_API int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                      ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                      ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                      ptl_hdr_data_t hdr_data, ptl_op_t operation,
                      ptl_datatype_t datatype) PTL_NOEXCEPT;
PTL_API int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                           ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset,
                           ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                           ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                           ptl_hdr_data_t hdr_data, ptl_op_t operation,
                           ptl_datatype_t datatype) PTL_NOEXCEPT;
PTL_API int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                    ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
                    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                    ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
                    const void* operand, ptl_op_t operation,
                    ptl_datatype_t datatype) PTL_NOEXCEPT;
PTL_API int PtlAtomicSync(void) PTL_NOEXCEPT;

PTL_API int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                            ptl_ack_req_t ack_req, ptl_process_t target_id,
                            ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                            ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
                            ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) PTL_NOEXCEPT;
PTL_API int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                            ptl_process_t target_id, ptl_pt_index_t pt_index,
                            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                            ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) PTL_NOEXCEPT;
PTL_API int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset,
                               ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_t target_id,
                               ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                               ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
                               ptl_op_t operation, ptl_datatype_t datatype,
                               ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) PTL_NOEXCEPT;
PTL_API int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                                    ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset,
                                    ptl_size_t length, ptl_process_t target_id,
                                    ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                    ptl_size_t remote_offset, void* user_ptr,
                                    ptl_hdr_data_t hdr_data, ptl_op_t operation,
                                    ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                                    ptl_size_t threshold) PTL_NOEXCEPT;
PTL_API int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                             ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset,
                             ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                             ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                             ptl_hdr_data_t hdr_data, const void* operand, ptl_op_t operation,
                             ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                             ptl_size_t threshold) PTL_NOEXCEPT;
PTL_API int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment,
                              ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) PTL_NOEXCEPT;
PTL_API int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct,
                              ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) PTL_NOEXCEPT;

/* Extensions beyond the specification. */
PTL_API int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index,
                                 const ptl_me_t* me, ptl_list_t ptl_list, void* user_ptr,
                                 ptl_handle_me_t* me_handle, ptl_handle_ct_t trig_ct_handle,
                                 ptl_size_t threshold) PTL_NOEXCEPT;
PTL_API int PtlTriggeredMEUnlink(ptl_handle_me_t me_handle, ptl_handle_ct_t trig_ct_handle,
                                 ptl_size_t threshold) PTL_NOEXCEPT;

PTL_API int PtlStartBundle(ptl_handle_ni_t ni_handle) PTL_NOEXCEPT;
PTL_API int PtlEndBundle(ptl_handle_ni_t ni_handle) PTL_NOEXCEPT;
PTL_API int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2) PTL_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* PORTALS4_H */

/* portals4_types.h: types and constants of the Portals 4.3 interface. Included by portals4.h, which
 * is the header that programs include.
 *
 * Numbers in parentheses are sections of the Portals 4.3 specification. All constants are usable in
 * switch labels and in static initialisers (3.2).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef PORTALS4_TYPES_H
#define PORTALS4_TYPES_H

#include <limits.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
/* A fixed underlying type makes every 32-bit value a valid one, so that a wrong argument can be
 * looked at and refused. In C the type of these enumerations is unsigned int anyway. */
#define PTL_ENUM enum : unsigned int
extern "C" {
#else
#define PTL_ENUM enum
#endif

/* Version (3.2.1) */

#define PTL_MAJOR_VERSION 4
#define PTL_MINOR_VERSION 3

/* Base types (3.3) */

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

/* Status registers (3.3.7). portals4_lintel.h names further registers of this implementation. */
typedef unsigned int ptl_sr_index_t;
typedef int64_t ptl_sr_value_t;
#define PTL_SR_DROP_COUNT 0u            /* messages dropped */
#define PTL_SR_PERMISSION_VIOLATIONS 1u /* messages refused by the uid of an entry */
#define PTL_SR_OPERATION_VIOLATIONS 2u  /* messages refused by the operations of an entry */

/* Return codes (table 3-7) */

#define PTL_OK 0              /* success */
#define PTL_FAIL 1            /* error during initialization */
#define PTL_ARG_INVALID 2     /* invalid argument */
#define PTL_CT_NONE_REACHED 3 /* timeout before any counting event reached its test */
#define PTL_EQ_DROPPED 4      /* an event was returned, at least one before it was lost */
#define PTL_EQ_EMPTY 5        /* no event available */
#define PTL_IN_USE 6          /* the object has pending operations */
#define PTL_ABORTED 7         /* PtlAbort was called */
#define PTL_IGNORED 8         /* the logical map was not set */
#define PTL_LIST_TOO_LONG 9   /* max_list_size reached */
#define PTL_NO_INIT 10        /* the library or the interface is not initialized */
#define PTL_NO_SPACE 11       /* a limit or the memory is exhausted */
#define PTL_PID_IN_USE 12     /* another process holds the requested pid */
#define PTL_PT_FULL 13        /* no free portal table entry */
#define PTL_PT_EQ_NEEDED 14   /* flow control needs an event queue */
#define PTL_PT_IN_USE 15      /* the portal table entry is allocated, or is in use */
#define PTL_INTERRUPTED 16    /* deprecated: never returned, use PTL_ABORTED */

/* Network interfaces (3.6) */

/* Options of PtlNIInit (3.6.2): one of each pair. */
#define PTL_NI_MATCHING (1u << 0)    /* match list entries (ME) select messages */
#define PTL_NI_NO_MATCHING (1u << 1) /* List entries (LE) take messages in order */
#define PTL_NI_LOGICAL (1u << 2)     /* processes are addressed by rank */
#define PTL_NI_PHYSICAL (1u << 3)    /* processes are addressed by nid and pid */

/* Bits of ptl_ni_limits_t::features (3.6.1). */
#define PTL_TARGET_BIND_INACCESSIBLE (1u << 0) /* LE and ME may cover memory that is not there */
#define PTL_TOTAL_DATA_ORDERING (1u << 1)      /* data of short messages is ordered (2.7.1) */
#define PTL_COHERENT_ATOMICS (1u << 2)         /* atomic against the processor, too (3.15.4) */

/* Limits of a logical network interface (3.6.1). */
typedef struct {
  int max_entries;                  /* List entries or match list entries */
  int max_unexpected_headers;       /* headers kept in unexpected lists */
  int max_mds;                      /* memory descriptors */
  int max_eqs;                      /* event queues */
  int max_cts;                      /* counting events */
  int max_pt_index;                 /* largest portal table index, at least 249 */
  int max_iovecs;                   /* elements of a PTL_IOVEC array */
  int max_list_size;                /* entries on one list of one portal table entry */
  int max_triggered_ops;            /* pending triggered operations */
  ptl_size_t max_msg_size;          /* bytes of one put, get or reply */
  ptl_size_t max_atomic_size;       /* bytes of one PtlAtomic */
  ptl_size_t max_fetch_atomic_size; /* bytes of one PtlFetchAtomic or PtlSwap */
  ptl_size_t max_waw_ordered_size;  /* bytes with ordered data, write (or read) after write */
  ptl_size_t max_war_ordered_size;  /* bytes with ordered data, write after read */
  ptl_size_t max_volatile_size;     /* bytes copied at the call from a PTL_MD_VOLATILE MD */
  unsigned int features;            /* PTL_TARGET_BIND_INACCESSIBLE and so on */
} ptl_ni_limits_t;

/* Portal table (3.7) */

/* Options of PtlPTAlloc (3.7.1). */
#define PTL_PT_ONLY_USE_ONCE (1u << 0)  /* hint: all priority entries have *_USE_ONCE */
#define PTL_PT_ONLY_TRUNCATE (1u << 1)  /* hint: no priority entry has PTL_ME_NO_TRUNCATE */
#define PTL_PT_FLOWCTRL (1u << 2)       /* disable the entry when a resource runs out (2.8) */
#define PTL_PT_ALLOC_DISABLED (1u << 3) /* refuse messages until PtlPTEnable */

/* Processes (3.9) */

/* A process: nid and pid on a physical interface, the rank on a logical one (3.9.1). */
typedef union {
  struct {
    ptl_nid_t nid;
    ptl_pid_t pid;
  } phys;
  ptl_rank_t rank;
} ptl_process_t;

/* Memory descriptors (3.10) */

typedef struct iovec ptl_iovec_t; /* iov_base, iov_len in bytes (3.10.2) */

/* MD, LE and ME: `start` points to an array of ptl_iovec_t, `length` is its number of elements. The
 * array must stay as it is until the MD is released or the entry is unlinked. */
#define PTL_IOVEC (1u << 0)

/* Options of an MD (3.10.1). */
#define PTL_MD_EVENT_SEND_DISABLE (1u << 1)    /* no full PTL_EVENT_SEND */
#define PTL_MD_EVENT_SUCCESS_DISABLE (1u << 2) /* full events only for failures */
#define PTL_MD_EVENT_CT_SEND (1u << 3)         /* count PTL_EVENT_SEND */
#define PTL_MD_EVENT_CT_REPLY (1u << 4)        /* count PTL_EVENT_REPLY */
#define PTL_MD_EVENT_CT_ACK (1u << 5)          /* count PTL_EVENT_ACK */
#define PTL_MD_EVENT_CT_BYTES (1u << 6)        /* successes count bytes (mlength), not events */
#define PTL_MD_UNORDERED (1u << 7)             /* messages may arrive in another order */
#define PTL_MD_VOLATILE (1u << 8)              /* short data is copied at the call (see PtlPut) */
#define PTL_MD_UNRELIABLE (1u << 9)            /* messages may be lost; puts without ack only */

/* Memory of the initiator (3.10.1). */
typedef struct {
  void* start;               /* first byte, or the PTL_IOVEC array */
  ptl_size_t length;         /* bytes, or elements of the array */
  unsigned int options;      /* PTL_MD_*, PTL_IOVEC */
  ptl_handle_eq_t eq_handle; /* full events, or PTL_EQ_NONE */
  ptl_handle_ct_t ct_handle; /* counting events, or PTL_CT_NONE */
} ptl_md_t;

/* List entries (3.11, 3.12) */

/* The lists of a portal table entry that entries are appended to (3.11.2). */
typedef PTL_ENUM{
    PTL_PRIORITY_LIST = 0, /* receives expected messages */
    PTL_OVERFLOW_LIST = 1  /* receives what no priority entry takes, and keeps its header */
} ptl_list_t;

/* What a search does with the unexpected headers it finds (3.11.4). */
typedef PTL_ENUM{
    PTL_SEARCH_ONLY = 0,  /* leaves them in the list */
    PTL_SEARCH_DELETE = 1 /* removes them */
} ptl_search_op_t;

/* Options of an ME (3.12.1). */
#define PTL_ME_OP_PUT (1u << 1)                 /* accept puts and atomics */
#define PTL_ME_OP_GET (1u << 2)                 /* accept gets; fetch-atomics and swaps need both */
#define PTL_ME_USE_ONCE (1u << 3)               /* unlink after the first message */
#define PTL_ME_UNEXPECTED_HDR_DISABLE (1u << 4) /* overflow list: keep no headers */
#define PTL_ME_IS_ACCESSIBLE (1u << 5)          /* promise: all of the memory is there */
#define PTL_ME_EVENT_LINK_DISABLE (1u << 6)     /* no PTL_EVENT_LINK */
#define PTL_ME_EVENT_COMM_DISABLE (1u << 7)     /* no put, get, atomic and search events */
#define PTL_ME_EVENT_FLOWCTRL_DISABLE (1u << 8) /* no PTL_EVENT_PT_DISABLED due to this entry */
#define PTL_ME_EVENT_SUCCESS_DISABLE (1u << 9)  /* communication events only for failures */
#define PTL_ME_EVENT_OVER_DISABLE (1u << 10)    /* no *_OVERFLOW events */
#define PTL_ME_EVENT_UNLINK_DISABLE (1u << 11)  /* no AUTO_UNLINK and AUTO_FREE events */
#define PTL_ME_EVENT_CT_COMM (1u << 12)         /* count put, get, atomic and search events */
#define PTL_ME_EVENT_CT_OVERFLOW (1u << 13)     /* count *_OVERFLOW events */
#define PTL_ME_EVENT_CT_BYTES (1u << 14)        /* successes count bytes (mlength), not events */
#define PTL_ME_MANAGE_LOCAL (1u << 15)          /* the entry keeps its own offset */
#define PTL_ME_NO_TRUNCATE (1u << 16)           /* pass on what does not fit */
#define PTL_ME_MAY_ALIGN (1u << 17)             /* MANAGE_LOCAL: data may be placed aligned */
/* MANAGE_LOCAL: unexpected headers that the append finds move the offset by their rlength. */
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

/* Memory of the target on a non-matching interface (3.11.1). */
typedef struct {
  void* start;               /* first byte, or the PTL_IOVEC array */
  ptl_size_t length;         /* bytes, or elements of the array */
  ptl_handle_ct_t ct_handle; /* counting events, or PTL_CT_NONE */
  ptl_uid_t uid;             /* who may access the entry, or PTL_UID_ANY */
  unsigned int options;      /* PTL_LE_*, PTL_IOVEC */
} ptl_le_t;

/* Memory of the target on a matching interface (3.12.1). The first fields are those of ptl_le_t, at
 * the same offsets. */
typedef struct {
  void* start;
  ptl_size_t length;
  ptl_handle_ct_t ct_handle;
  ptl_uid_t uid;
  unsigned int options;        /* PTL_ME_*, PTL_IOVEC */
  ptl_process_t match_id;      /* initiators to accept; fields may be PTL_*_ANY */
  ptl_match_bits_t match_bits; /* match if ((incoming ^ match_bits) & ~ignore_bits) == 0 */
  ptl_match_bits_t ignore_bits;
  ptl_size_t min_free; /* bytes; unlink when fewer remain (PTL_ME_MANAGE_LOCAL only) */
} ptl_me_t;

/* Operations (3.15) */

/* Acknowledgment of a put or atomic (3.15.1). */
typedef PTL_ENUM{
    PTL_NO_ACK_REQ = 0, /* none */
    PTL_ACK_REQ = 1,    /* full and counting events, as far as the MD has them */
    PTL_CT_ACK_REQ = 2, /* a count; a full event of a failure only */
    PTL_OC_ACK_REQ = 3  /* counts that the target is done, dropped messages included; no bytes */
} ptl_ack_req_t;

/* Atomic operations (3.15.4). PtlAtomic and PtlFetchAtomic take PTL_MIN to PTL_BXOR, PtlSwap takes
 * the others; those after PTL_SWAP work on one item and use the operand. Logical and bitwise
 * operations and PTL_MSWAP are for integers; PTL_MIN, PTL_MAX and the four ordering conditions
 * (_LE, _LT, _GE, _GT) for integers and floating point; the rest for complex numbers, too. */
typedef PTL_ENUM{
    PTL_MIN = 0,       PTL_MAX = 1,   PTL_SUM = 2,   PTL_DIFF = 3, /* target minus initiator */
    PTL_PROD = 4,      PTL_LOR = 5,   PTL_LAND = 6,  PTL_BOR = 7,    PTL_BAND = 8,
    PTL_LXOR = 9,      PTL_BXOR = 10, PTL_SWAP = 11, PTL_CSWAP = 12, /* swap if operand == target */
    PTL_CSWAP_NE = 13,                                               /* operand != target */
    PTL_CSWAP_LE = 14,                                               /* operand <= target */
    PTL_CSWAP_LT = 15,                                               /* operand < target */
    PTL_CSWAP_GE = 16,                                               /* operand >= target */
    PTL_CSWAP_GT = 17,                                               /* operand > target */
    PTL_MSWAP = 18 /* replace the bits that are set in the operand */
} ptl_op_t;

/* Types of the items of an atomic operation (3.15.4). */
typedef PTL_ENUM{PTL_INT8_T = 0,       PTL_UINT8_T = 1,
                 PTL_INT16_T = 2,      PTL_UINT16_T = 3,
                 PTL_INT32_T = 4,      PTL_UINT32_T = 5,
                 PTL_INT64_T = 6,      PTL_UINT64_T = 7,
                 PTL_FLOAT = 8,        PTL_FLOAT_COMPLEX = 9,
                 PTL_DOUBLE = 10,      PTL_DOUBLE_COMPLEX = 11,
                 PTL_LONG_DOUBLE = 12, PTL_LONG_DOUBLE_COMPLEX = 13} ptl_datatype_t;

/* Events (3.13, 3.14) */

/* Kinds of full events (3.13.1). */
typedef PTL_ENUM{
    PTL_EVENT_GET = 0,                   /* target: a get has read its data */
    PTL_EVENT_GET_OVERFLOW = 1,          /* target: an append found the header of an earlier get */
    PTL_EVENT_PUT = 2,                   /* target: the data of a put has arrived */
    PTL_EVENT_PUT_OVERFLOW = 3,          /* target: an append found the header of an earlier put */
    PTL_EVENT_ATOMIC = 4,                /* target: an atomic is done */
    PTL_EVENT_ATOMIC_OVERFLOW = 5,       /* target: an append found the header of an earlier one */
    PTL_EVENT_FETCH_ATOMIC = 6,          /* target: a fetch-atomic or swap is done */
    PTL_EVENT_FETCH_ATOMIC_OVERFLOW = 7, /* target: an append found the header of an earlier one */
    PTL_EVENT_REPLY = 8,                 /* initiator: a get, fetch-atomic or swap is complete */
    PTL_EVENT_SEND = 9,                  /* initiator: the buffer may be used again */
    PTL_EVENT_ACK = 10,                  /* initiator: a put or atomic is complete at the target */
    PTL_EVENT_PT_DISABLED = 11,          /* target: flow control has disabled a table entry */
    PTL_EVENT_LINK = 12,                 /* target: an entry was linked into its list */
    PTL_EVENT_AUTO_UNLINK = 13,          /* target: an entry was unlinked by the library */
    PTL_EVENT_AUTO_FREE = 14, /* target: no headers refer to an unlinked overflow entry */
    PTL_EVENT_SEARCH = 15,    /* target: a search found something, or has ended */
    PTL_EVENT_ERROR = 16      /* an error that fits nothing else */
} ptl_event_kind_t;

/* What became of the operation that an event reports (3.13.3). */
typedef PTL_ENUM{
    PTL_NI_OK = 0,
    PTL_NI_UNDELIVERABLE = 1,  /* the target cannot be reached, or died */
    PTL_NI_PT_DISABLED = 2,    /* initiator: the portal table entry is disabled */
    PTL_NI_DROPPED = 3,        /* initiator: dropped by the target for another reason */
    PTL_NI_PERM_VIOLATION = 4, /* initiator: refused by the usage identifier of the entry */
    PTL_NI_OP_VIOLATION = 5,   /* initiator: the entry does not allow this operation */
    PTL_NI_SEGV = 6,           /* memory that is not accessible */
    PTL_NI_NO_MATCH = 7        /* PTL_EVENT_SEARCH: nothing found, or nothing more */
} ptl_ni_fail_t;

/* A full event (3.13.4). Which fields are meaningful depends on the kind of the event. Of
 * PTL_EVENT_SEND, PTL_EVENT_ACK and PTL_EVENT_REPLY only user_ptr, mlength, remote_offset, type,
 * ptl_list, ni_fail_type and atomic_operation are written. */
typedef struct {
  void* start;                 /* first byte of the data at the target */
  void* user_ptr;              /* as given to the local call that the event belongs to */
  ptl_hdr_data_t hdr_data;     /* as given by the initiator */
  ptl_match_bits_t match_bits; /* as given by the initiator; 0 on a non-matching interface */
  ptl_size_t rlength;          /* bytes requested */
  ptl_size_t mlength;          /* bytes moved, after truncation */
  ptl_size_t remote_offset;    /* bytes; initiator: as used, target: as requested */
  ptl_process_t initiator;
  ptl_uid_t uid;           /* usage identifier of the initiator */
  ptl_pt_index_t pt_index; /* portal table entry that the message arrived at */
  ptl_event_kind_t type;
  ptl_list_t ptl_list; /* list of the entry that took the message */
  ptl_ni_fail_t ni_fail_type;
  ptl_op_t atomic_operation;  /* atomics only */
  ptl_datatype_t atomic_type; /* atomics only */
} ptl_event_t;

/* A counting event (3.14.1). Both counters wrap around at 2^64. */
typedef struct {
  ptl_size_t success; /* successful events, or bytes */
  ptl_size_t failure; /* failed events */
} ptl_ct_event_t;

#ifdef __cplusplus
}
#endif

#endif /* PORTALS4_TYPES_H */

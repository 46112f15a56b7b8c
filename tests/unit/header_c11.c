/* The public header compiled as C11 with -Wall -Wextra -Wpedantic. Every constant is usable where
 * the specification says so (3.2), and every function has the type that clients expect. Most checks
 * are made at compile time; header_c11_failure() makes the others. */
#include "header_c11.h"

#include <portals.h>
#include <portals4.h>
#include <portals4_lintel.h>
#include <stddef.h>

#if PTL_MAJOR_VERSION != 4 || PTL_MINOR_VERSION != 3
#error "3.2.1: the version is a preprocessor constant"
#endif

/* Static initialisers. */
static const ptl_handle_any_t no_objects[] = {PTL_INVALID_HANDLE, PTL_EQ_NONE, PTL_CT_NONE};
static const ptl_md_t whole_memory = {.start = NULL,
                                      .length = PTL_SIZE_MAX,
                                      .options = PTL_MD_VOLATILE | PTL_MD_EVENT_CT_ACK,
                                      .eq_handle = PTL_EQ_NONE,
                                      .ct_handle = PTL_CT_NONE};
static const ptl_me_t any_message = {.length = 0,
                                     .ct_handle = PTL_CT_NONE,
                                     .uid = PTL_UID_ANY,
                                     .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_ACK_DISABLE,
                                     .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                                     .ignore_bits = ~(ptl_match_bits_t)0};
static const ptl_process_t any_rank = {.rank = PTL_RANK_ANY};
static const ptl_interface_t interface = PTL_IFACE_DEFAULT;
static const ptl_pt_index_t any_index = PTL_PT_ANY;
static const ptl_time_t forever = PTL_TIME_FOREVER;

/* The labels of a switch must be distinct; constants_test.cc of the conformance tests has more.
 * Each function returns whether the value of a type has a name, so a value without a name is
 * detected as well. */
static int is_operation(ptl_op_t operation) {
  switch (operation) {
    case PTL_MIN:
    case PTL_MAX:
    case PTL_SUM:
    case PTL_DIFF:
    case PTL_PROD:
    case PTL_LOR:
    case PTL_LAND:
    case PTL_BOR:
    case PTL_BAND:
    case PTL_LXOR:
    case PTL_BXOR:
    case PTL_SWAP:
    case PTL_CSWAP:
    case PTL_CSWAP_NE:
    case PTL_CSWAP_LE:
    case PTL_CSWAP_LT:
    case PTL_CSWAP_GE:
    case PTL_CSWAP_GT:
    case PTL_MSWAP:
      return 1;
  }
  return 0;
}

static int is_datatype(ptl_datatype_t datatype) {
  switch (datatype) {
    case PTL_INT8_T:
    case PTL_UINT8_T:
    case PTL_INT16_T:
    case PTL_UINT16_T:
    case PTL_INT32_T:
    case PTL_UINT32_T:
    case PTL_INT64_T:
    case PTL_UINT64_T:
    case PTL_FLOAT:
    case PTL_FLOAT_COMPLEX:
    case PTL_DOUBLE:
    case PTL_DOUBLE_COMPLEX:
    case PTL_LONG_DOUBLE:
    case PTL_LONG_DOUBLE_COMPLEX:
      return 1;
  }
  return 0;
}

static int is_ack_request(ptl_ack_req_t request) {
  switch (request) {
    case PTL_NO_ACK_REQ:
    case PTL_ACK_REQ:
    case PTL_CT_ACK_REQ:
    case PTL_OC_ACK_REQ:
      return 1;
  }
  return 0;
}

static int is_list(ptl_list_t list) {
  switch (list) {
    case PTL_PRIORITY_LIST:
    case PTL_OVERFLOW_LIST:
      return 1;
  }
  return 0;
}

static int is_search(ptl_search_op_t search) {
  switch (search) {
    case PTL_SEARCH_ONLY:
    case PTL_SEARCH_DELETE:
      return 1;
  }
  return 0;
}

static int is_register(ptl_sr_index_t index) {
  switch (index) {
    case PTL_SR_DROP_COUNT:
    case PTL_SR_PERMISSION_VIOLATIONS:
    case PTL_SR_OPERATION_VIOLATIONS:
    case PTL_SR_LINTEL_MESSAGES_SENT:
    case PTL_SR_LINTEL_MESSAGES_RECEIVED:
    case PTL_SR_LINTEL_BYTES_SENT:
    case PTL_SR_LINTEL_BYTES_RECEIVED:
    case PTL_SR_LINTEL_SENDS_QUEUED:
    case PTL_SR_LINTEL_LANE_FULL_RETRIES:
    case PTL_SR_LINTEL_UNEXPECTED_DEPTH:
    case PTL_SR_LINTEL_UNEXPECTED_PEAK:
    case PTL_SR_LINTEL_POLLS:
    case PTL_SR_LINTEL_POLLS_WITH_WORK:
    case PTL_SR_LINTEL_SLEEPS:
    case PTL_SR_LINTEL_WAKEUPS:
    case PTL_SR_LINTEL_FRAMES_REFUSED:
    case PTL_SR_LINTEL_PEERS_FAILED:
    case PTL_SR_LINTEL_RETRANSMISSIONS:
    case PTL_SR_LINTEL_FRAMES_DROPPED:
    case PTL_SR_LINTEL_UNRELIABLE_SENT:
    case PTL_SR_LINTEL_CONNECTIONS_REFUSED:
      return 1;
    default:
      return 0;
  }
}

static int is_missing_object(ptl_handle_any_t handle) {
  switch (handle) {
    case PTL_INVALID_HANDLE:
    case PTL_EQ_NONE:
    case PTL_CT_NONE:
      return 1;
    default:
      return 0;
  }
}

/* Groups of registers do not overlap. */
_Static_assert(PTL_SR_LINTEL_MESSAGES_SENT > PTL_SR_OPERATION_VIOLATIONS &&
                   PTL_SR_LINTEL_MESSAGES_RECEIVED ==
                       PTL_SR_LINTEL_MESSAGES_SENT + PTL_SR_LINTEL_KINDS &&
                   PTL_SR_LINTEL_BYTES_SENT ==
                       PTL_SR_LINTEL_MESSAGES_RECEIVED + PTL_SR_LINTEL_KINDS &&
                   PTL_SR_LINTEL_BYTES_RECEIVED == PTL_SR_LINTEL_BYTES_SENT + PTL_SR_LINTEL_KINDS &&
                   PTL_SR_LINTEL_SENDS_QUEUED == PTL_SR_LINTEL_BYTES_RECEIVED + PTL_SR_LINTEL_KINDS,
               "3.3.7");

_Static_assert(PTL_LE_OP_PUT == PTL_ME_OP_PUT && PTL_LE_OP_GET == PTL_ME_OP_GET &&
                   PTL_LE_USE_ONCE == PTL_ME_USE_ONCE &&
                   PTL_LE_UNEXPECTED_HDR_DISABLE == PTL_ME_UNEXPECTED_HDR_DISABLE &&
                   PTL_LE_IS_ACCESSIBLE == PTL_ME_IS_ACCESSIBLE &&
                   PTL_LE_EVENT_LINK_DISABLE == PTL_ME_EVENT_LINK_DISABLE &&
                   PTL_LE_EVENT_COMM_DISABLE == PTL_ME_EVENT_COMM_DISABLE &&
                   PTL_LE_EVENT_FLOWCTRL_DISABLE == PTL_ME_EVENT_FLOWCTRL_DISABLE &&
                   PTL_LE_EVENT_SUCCESS_DISABLE == PTL_ME_EVENT_SUCCESS_DISABLE &&
                   PTL_LE_EVENT_OVER_DISABLE == PTL_ME_EVENT_OVER_DISABLE &&
                   PTL_LE_EVENT_UNLINK_DISABLE == PTL_ME_EVENT_UNLINK_DISABLE &&
                   PTL_LE_EVENT_CT_COMM == PTL_ME_EVENT_CT_COMM &&
                   PTL_LE_EVENT_CT_OVERFLOW == PTL_ME_EVENT_CT_OVERFLOW &&
                   PTL_LE_EVENT_CT_BYTES == PTL_ME_EVENT_CT_BYTES &&
                   PTL_LE_ACK_DISABLE == PTL_ME_ACK_DISABLE,
               "a list entry takes the options of a match list entry");

_Static_assert(sizeof(ptl_le_t) <= offsetof(ptl_me_t, match_id),
               "ptl_le_t is the beginning of ptl_me_t");

#define HAS_TYPE(function, ...) \
  _Static_assert(_Generic(&function, __VA_ARGS__ : 1, default : 0), #function)
HAS_TYPE(PtlInit, int (*)(void));
HAS_TYPE(PtlFini, void (*)(void));
HAS_TYPE(PtlAbort, void (*)(void));
HAS_TYPE(PtlNIInit, int (*)(ptl_interface_t, unsigned int, ptl_pid_t, const ptl_ni_limits_t*,
                            ptl_ni_limits_t*, ptl_handle_ni_t*));
HAS_TYPE(PtlNIFini, int (*)(ptl_handle_ni_t));
HAS_TYPE(PtlNIStatus, int (*)(ptl_handle_ni_t, ptl_sr_index_t, ptl_sr_value_t*));
HAS_TYPE(PtlNIHandle, int (*)(ptl_handle_any_t, ptl_handle_ni_t*));
HAS_TYPE(PtlSetMap, int (*)(ptl_handle_ni_t, ptl_size_t, const ptl_process_t*));
HAS_TYPE(PtlGetMap, int (*)(ptl_handle_ni_t, ptl_size_t, ptl_process_t*, ptl_size_t*));
HAS_TYPE(PtlPTAlloc,
         int (*)(ptl_handle_ni_t, unsigned int, ptl_handle_eq_t, ptl_pt_index_t, ptl_pt_index_t*));
HAS_TYPE(PtlPTFree, int (*)(ptl_handle_ni_t, ptl_pt_index_t));
HAS_TYPE(PtlPTDisable, int (*)(ptl_handle_ni_t, ptl_pt_index_t));
HAS_TYPE(PtlPTEnable, int (*)(ptl_handle_ni_t, ptl_pt_index_t));
HAS_TYPE(PtlGetUid, int (*)(ptl_handle_ni_t, ptl_uid_t*));
HAS_TYPE(PtlGetId, int (*)(ptl_handle_ni_t, ptl_process_t*));
HAS_TYPE(PtlGetPhysId, int (*)(ptl_handle_ni_t, ptl_process_t*));
HAS_TYPE(PtlMDBind, int (*)(ptl_handle_ni_t, const ptl_md_t*, ptl_handle_md_t*));
HAS_TYPE(PtlMDRelease, int (*)(ptl_handle_md_t));
HAS_TYPE(PtlLEAppend, int (*)(ptl_handle_ni_t, ptl_pt_index_t, const ptl_le_t*, ptl_list_t, void*,
                              ptl_handle_le_t*));
HAS_TYPE(PtlLEUnlink, int (*)(ptl_handle_le_t));
HAS_TYPE(PtlLESearch,
         int (*)(ptl_handle_ni_t, ptl_pt_index_t, const ptl_le_t*, ptl_search_op_t, void*));
HAS_TYPE(PtlMEAppend, int (*)(ptl_handle_ni_t, ptl_pt_index_t, const ptl_me_t*, ptl_list_t, void*,
                              ptl_handle_me_t*));
HAS_TYPE(PtlMEUnlink, int (*)(ptl_handle_me_t));
HAS_TYPE(PtlMESearch,
         int (*)(ptl_handle_ni_t, ptl_pt_index_t, const ptl_me_t*, ptl_search_op_t, void*));
HAS_TYPE(PtlEQAlloc, int (*)(ptl_handle_ni_t, ptl_size_t, ptl_handle_eq_t*));
HAS_TYPE(PtlEQFree, int (*)(ptl_handle_eq_t));
HAS_TYPE(PtlEQGet, int (*)(ptl_handle_eq_t, ptl_event_t*));
HAS_TYPE(PtlEQWait, int (*)(ptl_handle_eq_t, ptl_event_t*));
HAS_TYPE(PtlEQPoll,
         int (*)(const ptl_handle_eq_t*, unsigned int, ptl_time_t, ptl_event_t*, unsigned int*));
HAS_TYPE(PtlCTAlloc, int (*)(ptl_handle_ni_t, ptl_handle_ct_t*));
HAS_TYPE(PtlCTFree, int (*)(ptl_handle_ct_t));
HAS_TYPE(PtlCTCancelTriggered, int (*)(ptl_handle_ct_t));
HAS_TYPE(PtlCTGet, int (*)(ptl_handle_ct_t, ptl_ct_event_t*));
HAS_TYPE(PtlCTWait, int (*)(ptl_handle_ct_t, ptl_size_t, ptl_ct_event_t*));
HAS_TYPE(PtlCTPoll, int (*)(const ptl_handle_ct_t*, const ptl_size_t*, unsigned int, ptl_time_t,
                            ptl_ct_event_t*, unsigned int*));
HAS_TYPE(PtlCTSet, int (*)(ptl_handle_ct_t, ptl_ct_event_t));
HAS_TYPE(PtlCTInc, int (*)(ptl_handle_ct_t, ptl_ct_event_t));

/* The common parameters of the data movement functions. */
#define TARGET \
  ptl_process_t, ptl_pt_index_t, ptl_match_bits_t, ptl_size_t, void* /* up to user_ptr */
#define PUT_MD ptl_handle_md_t, ptl_size_t, ptl_size_t, ptl_ack_req_t
#define GET_MD ptl_handle_md_t, ptl_size_t, ptl_size_t
#define TWO_MDS ptl_handle_md_t, ptl_size_t, ptl_handle_md_t, ptl_size_t, ptl_size_t
#define TRIGGER ptl_handle_ct_t, ptl_size_t
HAS_TYPE(PtlPut, int (*)(PUT_MD, TARGET, ptl_hdr_data_t));
HAS_TYPE(PtlGet, int (*)(GET_MD, TARGET));
HAS_TYPE(PtlAtomic, int (*)(PUT_MD, TARGET, ptl_hdr_data_t, ptl_op_t, ptl_datatype_t));
HAS_TYPE(PtlFetchAtomic, int (*)(TWO_MDS, TARGET, ptl_hdr_data_t, ptl_op_t, ptl_datatype_t));
HAS_TYPE(PtlSwap, int (*)(TWO_MDS, TARGET, ptl_hdr_data_t, const void*, ptl_op_t, ptl_datatype_t));
HAS_TYPE(PtlAtomicSync, int (*)(void));
HAS_TYPE(PtlTriggeredPut, int (*)(PUT_MD, TARGET, ptl_hdr_data_t, TRIGGER));
HAS_TYPE(PtlTriggeredGet, int (*)(GET_MD, TARGET, TRIGGER));
HAS_TYPE(PtlTriggeredAtomic,
         int (*)(PUT_MD, TARGET, ptl_hdr_data_t, ptl_op_t, ptl_datatype_t, TRIGGER));
HAS_TYPE(PtlTriggeredFetchAtomic,
         int (*)(TWO_MDS, TARGET, ptl_hdr_data_t, ptl_op_t, ptl_datatype_t, TRIGGER));
HAS_TYPE(PtlTriggeredSwap,
         int (*)(TWO_MDS, TARGET, ptl_hdr_data_t, const void*, ptl_op_t, ptl_datatype_t, TRIGGER));
HAS_TYPE(PtlTriggeredCTInc, int (*)(ptl_handle_ct_t, ptl_ct_event_t, TRIGGER));
HAS_TYPE(PtlTriggeredCTSet, int (*)(ptl_handle_ct_t, ptl_ct_event_t, TRIGGER));
HAS_TYPE(PtlStartBundle, int (*)(ptl_handle_ni_t));
HAS_TYPE(PtlEndBundle, int (*)(ptl_handle_ni_t));
HAS_TYPE(PtlHandleIsEqual, int (*)(ptl_handle_any_t, ptl_handle_any_t));
HAS_TYPE(PtlTriggeredMEAppend, int (*)(ptl_handle_ni_t, ptl_pt_index_t, ptl_me_t*, ptl_list_t,
                                       void*, ptl_handle_me_t*, TRIGGER));
HAS_TYPE(PtlTriggeredMEUnlink, int (*)(ptl_handle_me_t, TRIGGER));

const char* header_c11_failure(struct header_layout* layout) {
  layout->le_bytes = sizeof(ptl_le_t);
  layout->me_bytes = sizeof(ptl_me_t);
  layout->md_bytes = sizeof(ptl_md_t);
  layout->event_bytes = sizeof(ptl_event_t);
  layout->limits_bytes = sizeof(ptl_ni_limits_t);
  layout->process_bytes = sizeof(ptl_process_t);
  layout->event_type_offset = offsetof(ptl_event_t, type);
  layout->event_datatype_offset = offsetof(ptl_event_t, atomic_type);
  layout->features_offset = offsetof(ptl_ni_limits_t, features);

  if (whole_memory.length != PTL_SIZE_MAX || any_message.uid != PTL_UID_ANY ||
      any_message.match_id.phys.nid != PTL_NID_ANY || any_rank.rank != PTL_RANK_ANY ||
      interface != PTL_IFACE_DEFAULT || any_index != PTL_PT_ANY || forever != PTL_TIME_FOREVER)
    return "static initialisers";
  for (unsigned i = 0; i < 3; ++i)
    if (!is_missing_object(no_objects[i])) return "handles of no object";
  if (!is_operation(PTL_MSWAP) || !is_datatype(PTL_LONG_DOUBLE_COMPLEX) ||
      !is_ack_request(PTL_OC_ACK_REQ) || !is_list(PTL_OVERFLOW_LIST) ||
      !is_search(PTL_SEARCH_DELETE) || !is_register(PTL_SR_LINTEL_CONNECTIONS_REFUSED))
    return "named values";
  return NULL;
}

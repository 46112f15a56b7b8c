// Constants and events as text. Set-up path.
#include <cinttypes>
#include <cstdio>

#include "portals4_lintel.h"

namespace {

struct Name {
  int value;
  const char* text;
};
#define LINTEL_NAME(constant) \
  { constant, #constant }
constexpr Name return_codes[] = {LINTEL_NAME(PTL_OK),           LINTEL_NAME(PTL_FAIL),
                                 LINTEL_NAME(PTL_ARG_INVALID),  LINTEL_NAME(PTL_CT_NONE_REACHED),
                                 LINTEL_NAME(PTL_EQ_DROPPED),   LINTEL_NAME(PTL_EQ_EMPTY),
                                 LINTEL_NAME(PTL_IN_USE),       LINTEL_NAME(PTL_ABORTED),
                                 LINTEL_NAME(PTL_IGNORED),      LINTEL_NAME(PTL_LIST_TOO_LONG),
                                 LINTEL_NAME(PTL_NO_INIT),      LINTEL_NAME(PTL_NO_SPACE),
                                 LINTEL_NAME(PTL_PID_IN_USE),   LINTEL_NAME(PTL_PT_FULL),
                                 LINTEL_NAME(PTL_PT_EQ_NEEDED), LINTEL_NAME(PTL_PT_IN_USE),
                                 LINTEL_NAME(PTL_INTERRUPTED)};
constexpr Name event_kinds[] = {
    LINTEL_NAME(PTL_EVENT_GET),          LINTEL_NAME(PTL_EVENT_GET_OVERFLOW),
    LINTEL_NAME(PTL_EVENT_PUT),          LINTEL_NAME(PTL_EVENT_PUT_OVERFLOW),
    LINTEL_NAME(PTL_EVENT_ATOMIC),       LINTEL_NAME(PTL_EVENT_ATOMIC_OVERFLOW),
    LINTEL_NAME(PTL_EVENT_FETCH_ATOMIC), LINTEL_NAME(PTL_EVENT_FETCH_ATOMIC_OVERFLOW),
    LINTEL_NAME(PTL_EVENT_REPLY),        LINTEL_NAME(PTL_EVENT_SEND),
    LINTEL_NAME(PTL_EVENT_ACK),          LINTEL_NAME(PTL_EVENT_PT_DISABLED),
    LINTEL_NAME(PTL_EVENT_LINK),         LINTEL_NAME(PTL_EVENT_AUTO_UNLINK),
    LINTEL_NAME(PTL_EVENT_AUTO_FREE),    LINTEL_NAME(PTL_EVENT_SEARCH),
    LINTEL_NAME(PTL_EVENT_ERROR)};
constexpr Name fail_types[] = {LINTEL_NAME(PTL_NI_OK),
                               LINTEL_NAME(PTL_NI_UNDELIVERABLE),
                               LINTEL_NAME(PTL_NI_PT_DISABLED),
                               LINTEL_NAME(PTL_NI_DROPPED),
                               LINTEL_NAME(PTL_NI_PERM_VIOLATION),
                               LINTEL_NAME(PTL_NI_OP_VIOLATION),
                               LINTEL_NAME(PTL_NI_SEGV),
                               LINTEL_NAME(PTL_NI_NO_MATCH)};
#undef LINTEL_NAME

template <size_t size>
const char* find(const Name (&names)[size], int value) noexcept {
  for (const Name& name : names)
    if (name.value == value) return name.text;
  return "unknown";
}

}  // namespace

extern "C" {

const char* PtlToStr(int value, ptl_str_type_t type) noexcept {
  switch (type) {
    case PTL_STR_ERROR:
      return find(return_codes, value);
    case PTL_STR_EVENT:
      return find(event_kinds, value);
    case PTL_STR_FAIL_TYPE:
      return find(fail_types, value);
  }
  return "unknown";
}

int PtlEvToStr(int verbose, const ptl_event_t* event, char* text) noexcept {
  const char* kind = PtlToStr(static_cast<int>(event->type), PTL_STR_EVENT);
  const char* fail = PtlToStr(static_cast<int>(event->ni_fail_type), PTL_STR_FAIL_TYPE);
  if (verbose == 0) return snprintf(text, PTL_EV_STR_SIZE, "%s %s", kind, fail);
  return snprintf(
      text, PTL_EV_STR_SIZE,
      "%s %s initiator %" PRIu32 ":%" PRIu32 " uid %" PRIu32 " pt_index %" PRIu32
      " list %u match_bits 0x%" PRIx64 " rlength %" PRIu64 " mlength %" PRIu64
      " remote_offset %" PRIu64 " start %p user_ptr %p hdr_data 0x%" PRIx64 " operation %u type %u",
      kind, fail, event->initiator.phys.nid, event->initiator.phys.pid, event->uid, event->pt_index,
      static_cast<unsigned>(event->ptl_list), event->match_bits, event->rlength, event->mlength,
      event->remote_offset, event->start, event->user_ptr, event->hdr_data,
      static_cast<unsigned>(event->atomic_operation), static_cast<unsigned>(event->atomic_type));
}

}  // extern "C"

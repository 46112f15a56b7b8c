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
constexpr Name sentences[] = {
    {PTL_OK, "PTL_OK: success"},
    {PTL_FAIL, "PTL_FAIL: it cannot be done; a line on standard error may say why"},
    {PTL_ARG_INVALID, "PTL_ARG_INVALID: an argument is not allowed"},
    {PTL_CT_NONE_REACHED, "PTL_CT_NONE_REACHED: no counter reached its test in time"},
    {PTL_EQ_DROPPED, "PTL_EQ_DROPPED: events were lost because the event queue was full"},
    {PTL_EQ_EMPTY, "PTL_EQ_EMPTY: there is no event"},
    {PTL_IN_USE, "PTL_IN_USE: a message still uses the object"},
    {PTL_ABORTED, "PTL_ABORTED: PtlAbort ended the wait"},
    {PTL_IGNORED, "PTL_IGNORED: the request has no meaning here, such as a map that was not set"},
    {PTL_LIST_TOO_LONG, "PTL_LIST_TOO_LONG: the list has max_list_size entries"},
    {PTL_NO_INIT, "PTL_NO_INIT: PtlInit was not called"},
    {PTL_NO_SPACE, "PTL_NO_SPACE: memory or a limit of the interface does not suffice"},
    {PTL_PID_IN_USE,
     "PTL_PID_IN_USE: another process has this pid, or this process has another one"},
    {PTL_PT_FULL, "PTL_PT_FULL: no portal table entry is free"},
    {PTL_PT_EQ_NEEDED, "PTL_PT_EQ_NEEDED: flow control needs an event queue"},
    {PTL_PT_IN_USE, "PTL_PT_IN_USE: the portal table entry is in use"},
    {PTL_INTERRUPTED, "PTL_INTERRUPTED: the wait was interrupted"}};

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

const char* PtlLintelStrError(int code) noexcept {
  for (const Name& sentence : sentences)
    if (sentence.value == code) return sentence.text;
  return "not a return code of Portals";
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

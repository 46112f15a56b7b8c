// Constants and events as text. Set-up path.
#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

#include "portals4_lintel.h"

namespace {

struct Name {
  int value;
  const char* text;
};
#define LINTEL_NAME(constant) \
  { constant, #constant }
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
// A return code, its name, and a sentence about it.
struct ReturnCode {
  int value;
  const char* name;
  const char* sentence;
};
#define LINTEL_CODE(constant, text) \
  { constant, #constant, #constant ": " text }
constexpr ReturnCode return_codes[] = {
    LINTEL_CODE(PTL_OK, "success"),
    LINTEL_CODE(PTL_FAIL, "it cannot be done; a line on standard error may say why"),
    LINTEL_CODE(PTL_ARG_INVALID, "an argument is not allowed"),
    LINTEL_CODE(PTL_CT_NONE_REACHED, "no counter reached its test in time"),
    LINTEL_CODE(PTL_EQ_DROPPED, "events were lost because the event queue was full"),
    LINTEL_CODE(PTL_EQ_EMPTY, "there is no event"),
    LINTEL_CODE(PTL_IN_USE, "a message still uses the object"),
    LINTEL_CODE(PTL_ABORTED, "PtlAbort ended the wait"),
    LINTEL_CODE(PTL_IGNORED, "the request has no meaning here, such as a map that was not set"),
    LINTEL_CODE(PTL_LIST_TOO_LONG, "the list has max_list_size entries"),
    LINTEL_CODE(PTL_NO_INIT, "PtlInit was not called"),
    LINTEL_CODE(PTL_NO_SPACE, "memory or a limit of the interface does not suffice"),
    LINTEL_CODE(PTL_PID_IN_USE, "another process has this pid, or this process has another one"),
    LINTEL_CODE(PTL_PT_FULL, "no portal table entry is free"),
    LINTEL_CODE(PTL_PT_EQ_NEEDED, "flow control needs an event queue"),
    LINTEL_CODE(PTL_PT_IN_USE, "the portal table entry is in use"),
    LINTEL_CODE(PTL_INTERRUPTED, "the wait was interrupted"),
};
#undef LINTEL_CODE

template <size_t size>
const char* find(const Name (&names)[size], int value) noexcept {
  for (const Name& name : names)
    if (name.value == value) return name.text;
  return "unknown";
}

// The columns of table 3-3, but for type and ni_fail_type, which all events have.
enum Field : unsigned {
  initiator = 1u << 0,
  pt_index = 1u << 1,
  list = 1u << 2,
  uid = 1u << 3,
  match_bits = 1u << 4,
  rlength = 1u << 5,
  mlength = 1u << 6,
  remote_offset = 1u << 7,
  start = 1u << 8,
  user_ptr = 1u << 9,
  hdr_data = 1u << 10,
  atomic = 1u << 11,
};

// The fields that table 3-3 defines: of any event of the kind, and of one with PTL_NI_OK.
struct Defined {
  unsigned always;
  unsigned on_success;
};

Defined defined_fields(ptl_event_kind_t kind) noexcept {
  constexpr unsigned of_get = initiator | pt_index | uid | match_bits | mlength | start | user_ptr;
  constexpr unsigned of_put = of_get | hdr_data;
  constexpr unsigned of_target = rlength | remote_offset;
  constexpr unsigned of_answer = list | mlength | remote_offset;
  switch (kind) {
    case PTL_EVENT_GET:
    case PTL_EVENT_GET_OVERFLOW:
      return {of_get, of_target};
    case PTL_EVENT_PUT:
    case PTL_EVENT_PUT_OVERFLOW:
      return {of_put, of_target};
    case PTL_EVENT_ATOMIC:
    case PTL_EVENT_ATOMIC_OVERFLOW:
    case PTL_EVENT_FETCH_ATOMIC:
    case PTL_EVENT_FETCH_ATOMIC_OVERFLOW:
      return {of_put | atomic, of_target};
    case PTL_EVENT_REPLY:
    case PTL_EVENT_ACK:
      return {user_ptr, of_answer};
    case PTL_EVENT_SEND:
      return {user_ptr, mlength};
    case PTL_EVENT_PT_DISABLED:
      return {pt_index, 0};
    case PTL_EVENT_LINK:
    case PTL_EVENT_AUTO_UNLINK:
    case PTL_EVENT_AUTO_FREE:
      return {pt_index | user_ptr, 0};
    case PTL_EVENT_SEARCH:
      // A failure has found no message: only user_ptr is defined (spec 3.13.1).
      return {user_ptr, of_put | of_target | atomic};
    case PTL_EVENT_ERROR:
      return {user_ptr, 0};
  }
  return {0, 0};
}

class EventText {
 public:
  explicit EventText(char* text) noexcept : text_(text) {}

  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) noexcept {
    va_list arguments;
    va_start(arguments, format);
    const int added = std::vsnprintf(
        text_ + length_, PTL_EV_STR_SIZE - static_cast<size_t>(length_), format, arguments);
    va_end(arguments);
    if (added > 0) length_ = std::min(length_ + added, PTL_EV_STR_SIZE - 1);
  }

  void add_fields(const ptl_event_t& event) noexcept {
    const Defined defined = defined_fields(event.type);
    const unsigned fields =
        defined.always | (event.ni_fail_type == PTL_NI_OK ? defined.on_success : 0);
    if ((fields & initiator) != 0)
      add(" initiator %" PRIu32 ":%" PRIu32, event.initiator.phys.nid, event.initiator.phys.pid);
    if ((fields & uid) != 0) add(" uid %" PRIu32, event.uid);
    if ((fields & pt_index) != 0) add(" pt_index %" PRIu32, event.pt_index);
    if ((fields & list) != 0) add(" list %u", static_cast<unsigned>(event.ptl_list));
    if ((fields & match_bits) != 0) add(" match_bits 0x%" PRIx64, event.match_bits);
    if ((fields & rlength) != 0) add(" rlength %" PRIu64, event.rlength);
    if ((fields & mlength) != 0) add(" mlength %" PRIu64, event.mlength);
    if ((fields & remote_offset) != 0) add(" remote_offset %" PRIu64, event.remote_offset);
    if ((fields & start) != 0) add(" start %p", event.start);
    if ((fields & user_ptr) != 0) add(" user_ptr %p", event.user_ptr);
    if ((fields & hdr_data) != 0) add(" hdr_data 0x%" PRIx64, event.hdr_data);
    if ((fields & atomic) != 0)
      add(" operation %u type %u", static_cast<unsigned>(event.atomic_operation),
          static_cast<unsigned>(event.atomic_type));
  }

  [[nodiscard]] int length() const noexcept { return length_; }

 private:
  char* text_;
  int length_ = 0;
};

}  // namespace

extern "C" {

const char* PtlToStr(int value, ptl_str_type_t type) noexcept {
  switch (type) {
    case PTL_STR_ERROR:
      for (const ReturnCode& code : return_codes)
        if (code.value == value) return code.name;
      break;
    case PTL_STR_EVENT:
      return find(event_kinds, value);
    case PTL_STR_FAIL_TYPE:
      return find(fail_types, value);
  }
  return "unknown";
}

const char* PtlLintelStrError(int code) noexcept {
  for (const ReturnCode& known : return_codes)
    if (known.value == code) return known.sentence;
  return "not a return code of Portals";
}

int PtlEvToStr(int verbose, const ptl_event_t* event, char* text) noexcept {
  EventText out(text);
  out.add("%s %s", PtlToStr(static_cast<int>(event->type), PTL_STR_EVENT),
          PtlToStr(static_cast<int>(event->ni_fail_type), PTL_STR_FAIL_TYPE));
  if (verbose != 0) out.add_fields(*event);
  return out.length();
}

}  // extern "C"

// Names of Portals constants. Set-up path.
// SPDX-License-Identifier: BSD-3-Clause
#include "common/portals_names.h"

#include <array>

namespace lintel::tools {
namespace {

struct Named {
  unsigned value;
  const char* name;
};

constexpr std::array return_codes{
    Named{PTL_OK, "PTL_OK"},
    Named{PTL_FAIL, "PTL_FAIL"},
    Named{PTL_ARG_INVALID, "PTL_ARG_INVALID"},
    Named{PTL_CT_NONE_REACHED, "PTL_CT_NONE_REACHED"},
    Named{PTL_EQ_DROPPED, "PTL_EQ_DROPPED"},
    Named{PTL_EQ_EMPTY, "PTL_EQ_EMPTY"},
    Named{PTL_IN_USE, "PTL_IN_USE"},
    Named{PTL_ABORTED, "PTL_ABORTED"},
    Named{PTL_IGNORED, "PTL_IGNORED"},
    Named{PTL_LIST_TOO_LONG, "PTL_LIST_TOO_LONG"},
    Named{PTL_NO_INIT, "PTL_NO_INIT"},
    Named{PTL_NO_SPACE, "PTL_NO_SPACE"},
    Named{PTL_PID_IN_USE, "PTL_PID_IN_USE"},
    Named{PTL_PT_FULL, "PTL_PT_FULL"},
    Named{PTL_PT_EQ_NEEDED, "PTL_PT_EQ_NEEDED"},
    Named{PTL_PT_IN_USE, "PTL_PT_IN_USE"},
};

constexpr std::array fail_types{
    Named{PTL_NI_OK, "PTL_NI_OK"},
    Named{PTL_NI_UNDELIVERABLE, "PTL_NI_UNDELIVERABLE"},
    Named{PTL_NI_PT_DISABLED, "PTL_NI_PT_DISABLED"},
    Named{PTL_NI_DROPPED, "PTL_NI_DROPPED"},
    Named{PTL_NI_PERM_VIOLATION, "PTL_NI_PERM_VIOLATION"},
    Named{PTL_NI_OP_VIOLATION, "PTL_NI_OP_VIOLATION"},
    Named{PTL_NI_SEGV, "PTL_NI_SEGV"},
    Named{PTL_NI_NO_MATCH, "PTL_NI_NO_MATCH"},
};

constexpr std::array event_kinds{
    Named{PTL_EVENT_GET, "PTL_EVENT_GET"},
    Named{PTL_EVENT_GET_OVERFLOW, "PTL_EVENT_GET_OVERFLOW"},
    Named{PTL_EVENT_PUT, "PTL_EVENT_PUT"},
    Named{PTL_EVENT_PUT_OVERFLOW, "PTL_EVENT_PUT_OVERFLOW"},
    Named{PTL_EVENT_ATOMIC, "PTL_EVENT_ATOMIC"},
    Named{PTL_EVENT_ATOMIC_OVERFLOW, "PTL_EVENT_ATOMIC_OVERFLOW"},
    Named{PTL_EVENT_FETCH_ATOMIC, "PTL_EVENT_FETCH_ATOMIC"},
    Named{PTL_EVENT_FETCH_ATOMIC_OVERFLOW, "PTL_EVENT_FETCH_ATOMIC_OVERFLOW"},
    Named{PTL_EVENT_REPLY, "PTL_EVENT_REPLY"},
    Named{PTL_EVENT_SEND, "PTL_EVENT_SEND"},
    Named{PTL_EVENT_ACK, "PTL_EVENT_ACK"},
    Named{PTL_EVENT_PT_DISABLED, "PTL_EVENT_PT_DISABLED"},
    Named{PTL_EVENT_LINK, "PTL_EVENT_LINK"},
    Named{PTL_EVENT_AUTO_UNLINK, "PTL_EVENT_AUTO_UNLINK"},
    Named{PTL_EVENT_AUTO_FREE, "PTL_EVENT_AUTO_FREE"},
    Named{PTL_EVENT_SEARCH, "PTL_EVENT_SEARCH"},
    Named{PTL_EVENT_ERROR, "PTL_EVENT_ERROR"},
};

template <class Table>
std::string find_name(const Table& table, unsigned value, const char* otherwise) {
  for (const Named& entry : table) {
    if (entry.value == value) return entry.name;
  }
  return std::string(otherwise) + ' ' + std::to_string(value);
}

}  // namespace

std::string return_code_name(int code) {
  return find_name(return_codes, static_cast<unsigned>(code), "return code");
}

std::string fail_type_name(ptl_ni_fail_t type) {
  return find_name(fail_types, type, "failure type");
}

std::string event_kind_name(ptl_event_kind_t kind) {
  return find_name(event_kinds, kind, "event kind");
}

}  // namespace lintel::tools

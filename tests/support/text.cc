// Names of Portals constants, and events as text, for messages about failed tests.
#include "support/text.h"

#include <sstream>
#include <utility>

namespace lintel::test {

namespace {

template <typename Value, std::size_t size>
std::string look_up(const std::pair<Value, const char*> (&names)[size], Value value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "unknown (" + std::to_string(static_cast<long long>(value)) + ")";
}

}  // namespace

std::string return_code_name(int code) {
  static constexpr std::pair<int, const char*> names[] = {
      {PTL_OK, "PTL_OK"},
      {PTL_FAIL, "PTL_FAIL"},
      {PTL_ARG_INVALID, "PTL_ARG_INVALID"},
      {PTL_CT_NONE_REACHED, "PTL_CT_NONE_REACHED"},
      {PTL_EQ_DROPPED, "PTL_EQ_DROPPED"},
      {PTL_EQ_EMPTY, "PTL_EQ_EMPTY"},
      {PTL_IN_USE, "PTL_IN_USE"},
      {PTL_ABORTED, "PTL_ABORTED"},
      {PTL_IGNORED, "PTL_IGNORED"},
      {PTL_LIST_TOO_LONG, "PTL_LIST_TOO_LONG"},
      {PTL_NO_INIT, "PTL_NO_INIT"},
      {PTL_NO_SPACE, "PTL_NO_SPACE"},
      {PTL_PID_IN_USE, "PTL_PID_IN_USE"},
      {PTL_PT_FULL, "PTL_PT_FULL"},
      {PTL_PT_EQ_NEEDED, "PTL_PT_EQ_NEEDED"},
      {PTL_PT_IN_USE, "PTL_PT_IN_USE"},
  };
  return look_up(names, code);
}

std::string event_name(ptl_event_kind_t kind) {
  static constexpr std::pair<ptl_event_kind_t, const char*> names[] = {
      {PTL_EVENT_GET, "PTL_EVENT_GET"},
      {PTL_EVENT_GET_OVERFLOW, "PTL_EVENT_GET_OVERFLOW"},
      {PTL_EVENT_PUT, "PTL_EVENT_PUT"},
      {PTL_EVENT_PUT_OVERFLOW, "PTL_EVENT_PUT_OVERFLOW"},
      {PTL_EVENT_ATOMIC, "PTL_EVENT_ATOMIC"},
      {PTL_EVENT_ATOMIC_OVERFLOW, "PTL_EVENT_ATOMIC_OVERFLOW"},
      {PTL_EVENT_FETCH_ATOMIC, "PTL_EVENT_FETCH_ATOMIC"},
      {PTL_EVENT_FETCH_ATOMIC_OVERFLOW, "PTL_EVENT_FETCH_ATOMIC_OVERFLOW"},
      {PTL_EVENT_REPLY, "PTL_EVENT_REPLY"},
      {PTL_EVENT_SEND, "PTL_EVENT_SEND"},
      {PTL_EVENT_ACK, "PTL_EVENT_ACK"},
      {PTL_EVENT_PT_DISABLED, "PTL_EVENT_PT_DISABLED"},
      {PTL_EVENT_LINK, "PTL_EVENT_LINK"},
      {PTL_EVENT_AUTO_UNLINK, "PTL_EVENT_AUTO_UNLINK"},
      {PTL_EVENT_AUTO_FREE, "PTL_EVENT_AUTO_FREE"},
      {PTL_EVENT_SEARCH, "PTL_EVENT_SEARCH"},
      {PTL_EVENT_ERROR, "PTL_EVENT_ERROR"},
  };
  return look_up(names, kind);
}

std::string fail_name(ptl_ni_fail_t fail) {
  static constexpr std::pair<ptl_ni_fail_t, const char*> names[] = {
      {PTL_NI_OK, "PTL_NI_OK"},
      {PTL_NI_UNDELIVERABLE, "PTL_NI_UNDELIVERABLE"},
      {PTL_NI_PT_DISABLED, "PTL_NI_PT_DISABLED"},
      {PTL_NI_DROPPED, "PTL_NI_DROPPED"},
      {PTL_NI_PERM_VIOLATION, "PTL_NI_PERM_VIOLATION"},
      {PTL_NI_OP_VIOLATION, "PTL_NI_OP_VIOLATION"},
      {PTL_NI_SEGV, "PTL_NI_SEGV"},
      {PTL_NI_NO_MATCH, "PTL_NI_NO_MATCH"},
  };
  return look_up(names, fail);
}

std::string operation_name(ptl_op_t operation) {
  static constexpr std::pair<ptl_op_t, const char*> names[] = {
      {PTL_MIN, "PTL_MIN"},           {PTL_MAX, "PTL_MAX"},
      {PTL_SUM, "PTL_SUM"},           {PTL_DIFF, "PTL_DIFF"},
      {PTL_PROD, "PTL_PROD"},         {PTL_LOR, "PTL_LOR"},
      {PTL_LAND, "PTL_LAND"},         {PTL_BOR, "PTL_BOR"},
      {PTL_BAND, "PTL_BAND"},         {PTL_LXOR, "PTL_LXOR"},
      {PTL_BXOR, "PTL_BXOR"},         {PTL_SWAP, "PTL_SWAP"},
      {PTL_CSWAP, "PTL_CSWAP"},       {PTL_CSWAP_NE, "PTL_CSWAP_NE"},
      {PTL_CSWAP_LE, "PTL_CSWAP_LE"}, {PTL_CSWAP_LT, "PTL_CSWAP_LT"},
      {PTL_CSWAP_GE, "PTL_CSWAP_GE"}, {PTL_CSWAP_GT, "PTL_CSWAP_GT"},
      {PTL_MSWAP, "PTL_MSWAP"},
  };
  return look_up(names, operation);
}

std::string datatype_name(ptl_datatype_t datatype) {
  static constexpr std::pair<ptl_datatype_t, const char*> names[] = {
      {PTL_INT8_T, "PTL_INT8_T"},
      {PTL_UINT8_T, "PTL_UINT8_T"},
      {PTL_INT16_T, "PTL_INT16_T"},
      {PTL_UINT16_T, "PTL_UINT16_T"},
      {PTL_INT32_T, "PTL_INT32_T"},
      {PTL_UINT32_T, "PTL_UINT32_T"},
      {PTL_INT64_T, "PTL_INT64_T"},
      {PTL_UINT64_T, "PTL_UINT64_T"},
      {PTL_FLOAT, "PTL_FLOAT"},
      {PTL_FLOAT_COMPLEX, "PTL_FLOAT_COMPLEX"},
      {PTL_DOUBLE, "PTL_DOUBLE"},
      {PTL_DOUBLE_COMPLEX, "PTL_DOUBLE_COMPLEX"},
      {PTL_LONG_DOUBLE, "PTL_LONG_DOUBLE"},
      {PTL_LONG_DOUBLE_COMPLEX, "PTL_LONG_DOUBLE_COMPLEX"},
  };
  return look_up(names, datatype);
}

std::string describe(const ptl_event_t& event) {
  std::ostringstream text;
  text << event_name(event.type) << " " << fail_name(event.ni_fail_type) << " user_ptr "
       << event.user_ptr << " start " << event.start << " rlength " << event.rlength << " mlength "
       << event.mlength << " remote_offset " << event.remote_offset << " match_bits 0x" << std::hex
       << event.match_bits << " hdr_data 0x" << event.hdr_data << std::dec << " initiator nid "
       << event.initiator.phys.nid << " (or rank) pid " << event.initiator.phys.pid << " uid "
       << event.uid << " pt_index " << event.pt_index << " list "
       << static_cast<unsigned>(event.ptl_list) << " operation "
       << operation_name(event.atomic_operation) << " datatype "
       << datatype_name(event.atomic_type);
  return text.str();
}

}  // namespace lintel::test

std::ostream& operator<<(std::ostream& stream, const ptl_event_t& event) {
  return stream << lintel::test::describe(event);
}

bool operator==(const ptl_ct_event_t& left, const ptl_ct_event_t& right) {
  return left.success == right.success && left.failure == right.failure;
}

std::ostream& operator<<(std::ostream& stream, const ptl_ct_event_t& value) {
  return stream << "{success " << value.success << ", failure " << value.failure << "}";
}

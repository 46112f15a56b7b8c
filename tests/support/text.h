// Names of Portals constants, and events as text, for messages about failed tests.
#pragma once

#include <portals4.h>

#include <ostream>
#include <string>

namespace lintel::test {

[[nodiscard]] std::string return_code_name(int code);
[[nodiscard]] std::string event_name(ptl_event_kind_t kind);
[[nodiscard]] std::string fail_name(ptl_ni_fail_t fail);
[[nodiscard]] std::string operation_name(ptl_op_t operation);
[[nodiscard]] std::string datatype_name(ptl_datatype_t datatype);

// Every field of the event, one line.
[[nodiscard]] std::string describe(const ptl_event_t& event);

}  // namespace lintel::test

// gtest finds these by argument-dependent lookup, hence outside the namespace.
std::ostream& operator<<(std::ostream& stream, const ptl_event_t& event);
bool operator==(const ptl_ct_event_t& left, const ptl_ct_event_t& right);
std::ostream& operator<<(std::ostream& stream, const ptl_ct_event_t& value);

// Common properties of the kinds of messages. Set-up path.
#pragma once

#include <portals4.h>

#include "fuzz/program.h"
#include "support/atomic_oracle.h"

namespace lintel::fuzz {

[[nodiscard]] constexpr bool is_atomic(Kind kind) { return kind >= Kind::atomic; }
[[nodiscard]] constexpr bool replies(Kind kind) {
  return kind == Kind::get || kind == Kind::fetch_atomic || kind == Kind::swap;
}

[[nodiscard]] constexpr ptl_event_kind_t arrival_kind(Kind kind) {
  switch (kind) {
    case Kind::put:
      return PTL_EVENT_PUT;
    case Kind::get:
      return PTL_EVENT_GET;
    case Kind::atomic:
      return PTL_EVENT_ATOMIC;
    default:
      return PTL_EVENT_FETCH_ATOMIC;
  }
}

[[nodiscard]] constexpr ptl_event_kind_t overflow_kind(Kind kind) {
  switch (kind) {
    case Kind::put:
      return PTL_EVENT_PUT_OVERFLOW;
    case Kind::get:
      return PTL_EVENT_GET_OVERFLOW;
    case Kind::atomic:
      return PTL_EVENT_ATOMIC_OVERFLOW;
    default:
      return PTL_EVENT_FETCH_ATOMIC_OVERFLOW;
  }
}

// The options that an entry must have (table 4-7).
[[nodiscard]] constexpr unsigned needed(Kind kind) {
  switch (kind) {
    case Kind::get:
      return PTL_ME_OP_GET;
    case Kind::fetch_atomic:
    case Kind::swap:
      return PTL_ME_OP_PUT | PTL_ME_OP_GET;
    default:
      return PTL_ME_OP_PUT;
  }
}

[[nodiscard]] inline const test::Datatype& datatype_of(const Message& message) {
  const auto all = test::all_datatypes();
  for (const test::Datatype& datatype : all)
    if (datatype.type == message.datatype) return datatype;
  return all.front();
}

// Whether the message stores its data in the entry unchanged.
[[nodiscard]] inline bool stores(const Message& message, const Entry& entry, const Portal& portal) {
  if (message.kind == Kind::put) return true;
  return message.kind != Kind::get && !(portal.cells && entry.list == PTL_PRIORITY_LIST);
}
[[nodiscard]] inline std::byte data_at(const Message& message, uint64_t index) {
  return message.kind == Kind::put ? payload_at(message.id, index) : message.item[index];
}

}  // namespace lintel::fuzz

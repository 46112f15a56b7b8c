// Appending, unlinking and searching list entries (spec 3.11.2-3.11.4, 3.12.2-3.12.4). Called by
// the application's threads; appends are on the message path.
#pragma once

#include <cstdint>

#include "core/events/triggered_operation.h"
#include "core/objects/network_interface.h"
#include "portals4.h"

namespace lintel {

// Arguments of an append or a search: an LE is an ME without match criteria.
struct EntryArguments {
  const ptl_me_t& entry;  // an LE fills the common fields
  CountingEvent* counter;
  uint32_t pt_index;
  void* user_ptr;
};

// Options that the description of an entry may contain (spec 3.11.1, 3.12.1).
[[nodiscard]] constexpr unsigned entry_options(bool matching) noexcept {
  constexpr unsigned common =
      PTL_IOVEC | PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_UNEXPECTED_HDR_DISABLE |
      PTL_ME_IS_ACCESSIBLE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |
      PTL_ME_EVENT_FLOWCTRL_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_EVENT_OVER_DISABLE |
      PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW |
      PTL_ME_EVENT_CT_BYTES;
  constexpr unsigned of_matching =
      PTL_ME_MANAGE_LOCAL | PTL_ME_NO_TRUNCATE | PTL_ME_MAY_ALIGN | PTL_ME_LOCAL_INC_UH_RLENGTH;
  return common | (matching ? of_matching : 0);
}

// An entry with one of these counts messages.
inline constexpr unsigned counting_options = PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW;

// The options and the number of elements that PTL_IOVEC announces.
[[nodiscard, gnu::always_inline]] inline bool entry_options_are_valid(
    const NetworkInterface& interface, bool matching, const ptl_me_t& entry) noexcept {
  return (entry.options & ~entry_options(matching)) == 0 &&
         ((entry.options & PTL_IOVEC) == 0 ||
          entry.length <= static_cast<ptl_size_t>(interface.limits().max_iovecs));
}

// append_entry.h has the appends.

// Appends that wait for a counter (PtlTriggeredMEAppend, an extension): the handle exists from the
// call on. The description of the entry is the application's, is read when the append is due, and
// may have changed since the call.

// Sets `handle`. PTL_OK, PTL_NO_SPACE.
[[nodiscard]] int reserve_entry(NetworkInterface& interface, uint32_t pt_index,
                                uint64_t* handle) noexcept;

// Appends, unless that was cancelled. A failure is posted as PTL_EVENT_ERROR, counted and logged.
// No lock held.
void append_reserved(NetworkInterface& interface, const TriggeredEntry& arguments) noexcept;

// The append is not carried out, the handle ends, and the description is not read. False: the
// append is under way or has happened.
bool cancel_reserved(NetworkInterface& interface, const HandleFields& handle) noexcept;

enum class UnlinkResult {
  unlinked,  // unlinked now, or a triggered append was cancelled before it was due
  in_use,    // operations or headers refer to the entry
  ended,     // the entry was unlinked automatically: all its events are posted
  invalid,
};
[[nodiscard]] UnlinkResult unlink_by_handle(NetworkInterface& interface,
                                            const HandleFields& handle) noexcept;
// Notes that PtlMEUnlink or PtlLEUnlink reports the end of an entry that has ended. True: no
// earlier call has reported it.
[[nodiscard]] bool tell_end(NetworkInterface& interface, const HandleFields& handle) noexcept;

[[nodiscard]] int search_unexpected(NetworkInterface& interface, const EntryArguments& arguments,
                                    ptl_search_op_t operation) noexcept;

}  // namespace lintel

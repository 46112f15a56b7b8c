// Appending, unlinking and searching list entries (spec 3.11.2-3.11.4, 3.12.2-3.12.4). Called by
// the application's threads; appends are on the message path.
#pragma once

#include <cstdint>

#include "core/objects/network_interface.h"

namespace lintel {

// Arguments of an append or a search: an LE is an ME without match criteria.
struct EntryArguments {
  const ptl_me_t& entry;  // an LE fills the common fields
  CountingEvent* counter;
  uint32_t pt_index;
  void* user_ptr;
};

// append_entry.h has the appends, reserved_append.h those that wait for a counter.

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

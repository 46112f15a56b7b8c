// Appends that wait for a counter (PtlTriggeredMEAppend, an extension): the handle exists from the
// call on. The description of the entry is the application's, is read when the append is due, and
// may have changed since the call. Message path.
#pragma once

#include <cstdint>

#include "core/events/triggered_operation.h"
#include "core/objects/network_interface.h"

namespace lintel {

// Sets `handle`. PTL_OK, PTL_NO_SPACE.
[[nodiscard]] int reserve_entry(NetworkInterface& interface, uint32_t pt_index,
                                uint64_t* handle) noexcept;

// Appends, unless that was cancelled. A failure is posted as PTL_EVENT_ERROR, counted and logged.
// No lock held.
void append_reserved(NetworkInterface& interface, const TriggeredEntry& arguments) noexcept;

// The append is not carried out, the handle ends, and the description is not read. False: the
// append is under way or has happened.
bool cancel_reserved(NetworkInterface& interface, const HandleFields& handle) noexcept;

}  // namespace lintel

// Allocating, freeing, disabling and enabling portal table entries (spec 3.7). Set-up path.
#pragma once

#include <cstdint>

#include "core/objects/network_interface.h"

namespace lintel {

// `requested` may be PTL_PT_ANY. PTL_OK, PTL_PT_FULL, PTL_PT_IN_USE, PTL_NO_SPACE.
[[nodiscard]] int allocate_portal(NetworkInterface& interface, unsigned options,
                                  EventQueueObject* event_queue, uint32_t requested,
                                  uint32_t* pt_index) noexcept;
// PTL_OK, PTL_ARG_INVALID, PTL_PT_IN_USE (entries or unexpected headers are left).
[[nodiscard]] int free_portal(NetworkInterface& interface, uint32_t pt_index) noexcept;
// Enables or disables an entry. A disabled entry accepts no message (spec 3.7.3, 3.7.4). PTL_OK,
// PTL_ARG_INVALID.
[[nodiscard]] int set_portal_enabled(NetworkInterface& interface, uint32_t pt_index,
                                     bool enabled) noexcept;
// Returns whether no message is being delivered there. The entry exists.
[[nodiscard]] bool portal_is_quiet(NetworkInterface& interface, uint32_t pt_index) noexcept;

}  // namespace lintel

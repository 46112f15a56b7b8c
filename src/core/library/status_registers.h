// Status registers: the three of the specification and those of portals4_lintel.h (spec 3.3.7,
// 3.6.4).
#pragma once

#include "core/objects/network_interface.h"
#include "core/operations/physical_interface.h"
#include "portals4.h"

namespace lintel {

// False: there is no such register.
[[nodiscard]] bool read_status_register(const NetworkInterface& interface, ptl_sr_index_t index,
                                        ptl_sr_value_t* value) noexcept;

// Writes the statistics that PTL_STATS requests when an interface closes: lines of text, or a line
// of JSON in a file. Set-up path.

void report_statistics(const PhysicalInterface& physical) noexcept;

}  // namespace lintel

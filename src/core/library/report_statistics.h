// What PTL_STATS writes when an interface closes: lines for people, or a line of JSON in a file.
// Set-up path.
#pragma once

#include "core/operations/physical_interface.h"

namespace lintel {

void report_statistics(const PhysicalInterface& physical) noexcept;

}  // namespace lintel

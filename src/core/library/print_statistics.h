// What PTL_STATS=1 prints when an interface closes. Set-up path.
#pragma once

#include "core/operations/physical_interface.h"

namespace lintel {

// To stderr.
void print_statistics(const PhysicalInterface& physical) noexcept;

}  // namespace lintel

// Reports about each driver, for ptl_info. Set-up path.
#pragma once

#include <string>
#include <vector>

#include "memory_kind/memory_kind.h"

// Exported for programs of this version, see cmake/portals.map.in.
#pragma GCC visibility push(default)
namespace lintel {

struct DriverReport {
  std::string name;            // word in PTL_DEVICE_MEMORY
  MemoryKind* kind = nullptr;  // nullptr: not in use
  std::string text;            // path of the library, or why the driver is not in use
};

// All drivers that the library knows, after look_for_drivers().
[[nodiscard]] std::vector<DriverReport> driver_reports();

// The same, after loading those that PTL_DEVICE_MEMORY permits.
[[nodiscard]] std::vector<DriverReport> load_drivers();

// Set-up path. The opposite of use_kind(), which was called last for this kind. Nothing uses its
// memory any more.
void forget_kind(MemoryKind& kind) noexcept;

}  // namespace lintel
#pragma GCC visibility pop

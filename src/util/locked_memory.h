// The limit of locked memory, which registration of memory with a device runs into. Set-up path.
#pragma once

#include <string>

// Exported for modules and programs of this version, see cmake/portals.map.in.
#pragma GCC visibility push(default)
namespace lintel {

// "the limit of locked memory (RLIMIT_MEMLOCK) is 8192 KiB for this process: raise it with ..."
[[nodiscard]] std::string locked_memory_advice();

}  // namespace lintel
#pragma GCC visibility pop

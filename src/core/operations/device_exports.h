// Allocations of devices that this process has named to others of the node, which map them. No
// event tells that the program has freed one: its number says so, of which the driver is asked from
// time to time. Messages that name memory of a device; connection path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory_kind/memory_kind.h"
#include "util/lock.h"

namespace lintel {

class DeviceExports {
 public:
  // Allocations that are kept. Further ones are exported again for each message, and others map
  // them until they name something else at the same addresses.
  static constexpr size_t most = 256;

  // `allocation` has just been described. False: the driver exports none of its memory.
  [[nodiscard]] bool find_or_export(MemoryKind& kind, const DeviceAllocation& allocation,
                                    ExportedAllocation* out) noexcept;
  // Looks from the entry `*place` on for one that was freed, and takes it out. False: none.
  [[nodiscard]] bool take_freed(size_t* place, ExportedAllocation* out) noexcept;

 private:
  Mutex lock_;
  std::vector<ExportedAllocation> exports_ LINTEL_GUARDED_BY(lock_);
};

}  // namespace lintel

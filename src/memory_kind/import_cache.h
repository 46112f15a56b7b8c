// Allocations of other processes that are mapped here. Mappings are kept after use, for the next
// message that names them, and given up when the exporter names another allocation at the same
// addresses, or when too many are kept. Connection path.
#pragma once

#include <cstdint>
#include <vector>

#include "memory_kind/device_driver.h"
#include "util/lock.h"

namespace lintel {

class ImportCache {
 public:
  static constexpr size_t max_imports = 256;

  explicit ImportCache(DeviceDriver& driver) : driver_(driver) {}

  [[nodiscard]] void* open(const ExportedAllocation& exported) noexcept;
  void close(void* base) noexcept;

 private:
  struct Import {
    ExportedAllocation exported;
    void* base;
    unsigned users;
    uint64_t last_use;
  };

  void drop_stale(const ExportedAllocation& exported) LINTEL_REQUIRES(lock_);
  [[nodiscard]] bool make_room() LINTEL_REQUIRES(lock_);
  [[nodiscard]] void* map(const ExportedAllocation& exported) LINTEL_REQUIRES(lock_);

  DeviceDriver& driver_;
  Mutex lock_;
  std::vector<Import> imports_ LINTEL_GUARDED_BY(lock_);
  uint64_t uses_ LINTEL_GUARDED_BY(lock_) = 0;
};

}  // namespace lintel

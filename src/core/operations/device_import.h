// Memory of a device that a process names in its requests, for others of the node to have it copied
// by the device. Message path; the first message about an allocation maps it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/objects/memory_region.h"
#include "core/operations/device_exports.h"
#include "memory_kind/memory_kind.h"

namespace lintel {

// The payload of a request with names_device.
struct DeviceDescription {
  ExportedAllocation allocation;
  uint64_t offset;  // of the first byte of the message, in the allocation
};
static_assert(sizeof(DeviceDescription) == 120 && offsetof(DeviceDescription, offset) == 112);

// The initiator's side. False: the range is not within one allocation, or its driver exports none.
[[nodiscard]] bool describe_device(DeviceExports& exports, const MemoryRegion& region,
                                   uint64_t offset, uint64_t length,
                                   DeviceDescription* out) noexcept;

// The range as the target reaches it.
class DeviceImport {
 public:
  // `description` is not trusted. `process`: process number of the peer on this node, 0 if there is
  // none. An import that is not open says that the range cannot be reached.
  [[nodiscard]] static DeviceImport open(const DeviceDescription& description, uint32_t process,
                                         uint64_t length) noexcept;
  // The owner of the only copy in use does this, when no copy of memory is under way.
  void close() noexcept;

  [[nodiscard]] bool is_open() const noexcept { return kind_ != nullptr; }
  [[nodiscard]] MemoryKind* kind() const noexcept { return kind_; }
  [[nodiscard]] std::byte* address(uint64_t offset) const noexcept { return start_ + offset; }

 private:
  MemoryKind* kind_ = nullptr;
  std::byte* start_ = nullptr;
  void* mapping_ = nullptr;  // nullptr: memory of this process
};

}  // namespace lintel

#include "registration/device_distances.h"

#include "memory_kind/memory_kind.h"

namespace lintel {

PciDistance DeviceDistances::from(const void* address) noexcept {
  DeviceAllocation allocation;
  MemoryKind* const kind = device_memory_in_use() ? kind_of(address, &allocation) : nullptr;
  if (kind == nullptr) return PciDistance::bridge;
  for (const Known& known : known_)
    if (known.kind == kind->number() && known.device == allocation.device) return known.distance;
  try {
    char device[32] = "";
    kind->pci_address(allocation.device, device, sizeof device);
    // An empty address would name the directory of all devices.
    const PciDistance distance =
        *device == '\0' ? PciDistance::far : pci_distance(port_, pci_directory(device));
    known_.push_back({kind->number(), allocation.device, distance});
    return distance;
  } catch (...) {  // no memory
    return PciDistance::far;
  }
}

}  // namespace lintel

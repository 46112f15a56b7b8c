// Memory of a device for tests that were written for memory of the host. With
// LINTEL_TEST_DEVICE=initiator, target or both, the memory of that side is memory of a stand-in for
// a device. The test reads and writes it through a view that only the stand-in has; descriptors and
// entries get the address of the device, which the processor cannot access. Set-up path.
#pragma once

#include <portals4.h>

#include <cstddef>
#include <span>

namespace lintel::test {

enum class Side { initiator, target };

// Whether the memory of that side is that of a device.
[[nodiscard]] bool has_device_memory(Side side);

// Zeroed memory, released when the process ends.
[[nodiscard]] std::span<std::byte> allocate_view(std::size_t bytes);

// The address of the device behind a view; other addresses as they are.
[[nodiscard]] void* behind_view(void* start);
// Replaces the addresses in an array of PTL_IOVEC.
void name_devices(const ptl_iovec_t* elements, ptl_size_t count);
// The opposite of behind_view().
[[nodiscard]] void* view_of(void* start);

}  // namespace lintel::test

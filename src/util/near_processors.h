// Whether a device is near to the processors of this process, or to another device, as sysfs shows
// it. Set-up path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lintel {

// `device`: a directory with a file local_cpulist. True if nothing is known.
[[nodiscard, gnu::visibility("default")]] bool is_near(const std::string& device);

// What two PCI devices have in common, the nearest first. `far`: nothing, or nothing is known.
enum class PciDistance : uint8_t { bridge, root, numa_node, far };

// Of the devices whose directories these are.
[[nodiscard, gnu::visibility("default")]] PciDistance pci_distance(const std::string& one,
                                                                   const std::string& other);
// The directory of a device ("0000:3B:00.0").
[[nodiscard, gnu::visibility("default")]] std::string pci_directory(std::string address);

// Whether one of the processors in `text` ("0-3,8") is in `own`; true if `text` is no such list.
[[nodiscard]] bool shares_processor(std::string_view text, const std::vector<unsigned>& own);

}  // namespace lintel

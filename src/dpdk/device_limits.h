// What virtual devices do not say of themselves: how long a frame fits their buffers, how many wait
// there. It follows from their arguments. Set-up path; knows no DPDK.
#pragma once

#include <cstdint>
#include <string>

namespace lintel {

struct DeviceLimits {
  bool known = false;        // otherwise the device says it itself
  uint32_t frame_bytes = 0;  // of the longest Ethernet frame, without its checksum
  uint32_t ring_frames = 0;
  uint32_t slot_bytes = 0;  // that a buffer must hold, whatever is really sent
};

// `device` is the device with its arguments, as in PTL_DPDK_PORTS.
[[nodiscard]] DeviceLimits limits_of_device(const std::string& device);

// The value of an argument of a device; empty if it is not there.
[[nodiscard]] std::string device_argument(const std::string& device, const std::string& name);

}  // namespace lintel

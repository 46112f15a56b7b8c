// Limits that virtual devices do not report: the length of frames in their buffers, the number of
// frames there, the memory in which frames may lie. They follow from the arguments of the devices.
// Set-up path; does not depend on DPDK.
#pragma once

#include <cstdint>
#include <string>

namespace lintel {

struct DeviceLimits {
  bool known = false;        // false: the device itself reports its limits
  uint32_t frame_bytes = 0;  // length of the longest Ethernet frame, without its checksum
  uint32_t ring_frames = 0;
  uint32_t slot_bytes = 0;  // minimum size of a buffer, for frames of any length
};

// `device` is the device with its arguments, as in PTL_DPDK_PORTS.
[[nodiscard]] DeviceLimits limits_of_device(const std::string& device);

// Memory in which a frame may lie that a device sends.
enum class FrameMemory : uint8_t {
  of_dpdk,     // buffers of DPDK: the other side maps nothing else
  registered,  // also memory that was registered with the device, and that stays
  anywhere,    // the driver copies the frame, out of one buffer or several, before it returns
};
[[nodiscard]] FrameMemory frame_memory_of(const std::string& device);

// The value of an argument of a device; empty if it is not there.
[[nodiscard]] std::string device_argument(const std::string& device, const std::string& name);

}  // namespace lintel

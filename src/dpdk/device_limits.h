// What virtual devices do not say of themselves: how long a frame fits their buffers, how many wait
// there, where frames may lie. It follows from their arguments. Set-up path; knows no DPDK.
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

// Where a frame may lie that a device is to send.
enum class FrameMemory : uint8_t {
  of_dpdk,     // in DPDK's own buffers: the other side maps nothing else
  registered,  // also in memory that was registered with it, and that stays
  anywhere,    // the driver copies the frame, out of one buffer or several, before it returns
};
[[nodiscard]] FrameMemory frame_memory_of(const std::string& device);

// The value of an argument of a device; empty if it is not there.
[[nodiscard]] std::string device_argument(const std::string& device, const std::string& name);

}  // namespace lintel

// The defaults are those of DPDK 22.11. Set-up path.
#include "dpdk/device_limits.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>

#include "util/new_descriptor.h"

namespace lintel {

namespace {

constexpr uint32_t ethernet_header_bytes = 14;

bool is_driver(const std::string& device, const char* driver) {
  const std::string name = driver;
  return device.compare(0, name.size(), name) == 0;
}

uint32_t number_argument(const std::string& device, const char* name, uint32_t otherwise) {
  const std::string text = device_argument(device, name);
  uint32_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc{} && value != 0 ? value : otherwise;
}

// Payload bytes of a frame on a network interface of the kernel; 0: unknown.
uint32_t mtu_of_interface(const std::string& name) {
  ifreq request{};
  if (name.empty() || name.size() >= sizeof request.ifr_name) return 0;
  std::copy(name.begin(), name.end(), request.ifr_name);
  const Descriptor any = open_socket(AF_INET, SOCK_DGRAM);
  const bool known = ioctl(any.get(), SIOCGIFMTU, &request) == 0;
  return known && request.ifr_mtu > 0 ? static_cast<uint32_t>(request.ifr_mtu) : 0;
}

DeviceLimits with_interface(DeviceLimits limits, const std::string& device) {
  if (const uint32_t mtu = mtu_of_interface(device_argument(device, "iface")); mtu != 0)
    limits.frame_bytes = std::min(limits.frame_bytes, mtu + ethernet_header_bytes);
  return limits;
}

}  // namespace

std::string device_argument(const std::string& device, const std::string& name) {
  for (size_t from = 0; from < device.size();) {
    const size_t end = std::min(device.find(',', from), device.size());
    if (device.compare(from, name.size() + 1, name + "=") == 0)
      return device.substr(from + name.size() + 1, end - from - name.size() - 1);
    from = end + 1;
  }
  return "";
}

DeviceLimits limits_of_device(const std::string& device) {
  if (is_driver(device, "net_memif")) {
    // A longer frame takes several buffers, which the driver gets wrong.
    const uint32_t log2_ring = number_argument(device, "rsize", 10);
    const uint32_t slot = number_argument(device, "bsize", 2048);
    return {true, slot, 1u << std::min(log2_ring, 14u), slot};
  }
  if (is_driver(device, "net_af_packet")) {
    // A slot of the ring also holds the kernel's record of the frame.
    constexpr uint32_t record_bytes = 96;
    const uint32_t slot = number_argument(device, "framesz", 2048);
    return with_interface(
        {true, slot - std::min(slot, record_bytes), number_argument(device, "framecnt", 512), slot},
        device);
  }
  if (is_driver(device, "net_af_xdp")) return with_interface({true, 3314, 1024, 3314}, device);
  if (is_driver(device, "net_virtio_user") || is_driver(device, "net_vhost"))
    return {true, 9216, number_argument(device, "queue_size", 256), 9216};
  return {};
}

// A device that is not known to copy gets no memory that does not stay.
FrameMemory frame_memory_of(const std::string& device) {
  if (is_driver(device, "net_memif"))
    return device_argument(device, "zero-copy") == "yes" ? FrameMemory::of_dpdk
                                                         : FrameMemory::anywhere;
  if (is_driver(device, "net_af_packet")) return FrameMemory::anywhere;
  if (is_driver(device, "net_virtio_user")) return FrameMemory::of_dpdk;
  return FrameMemory::registered;
}

}  // namespace lintel

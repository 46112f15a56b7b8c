// How far a network port is from the devices whose memory it accesses. Message path of large
// payloads, but for the first question about a device, which reads sysfs.
#pragma once

#include <string>
#include <vector>

#include "util/near_processors.h"

namespace lintel {

class DeviceDistances {
 public:
  // `port`: the directory of its PCI device in sysfs.
  explicit DeviceDistances(std::string port) : port_(std::move(port)) {}

  // One thread. From the device whose memory is at `address`; `bridge` if that is of the host.
  [[nodiscard, gnu::visibility("default")]] PciDistance from(const void* address) noexcept;

 private:
  struct Known {
    uint8_t kind;
    int device;
    PciDistance distance;
  };

  const std::string port_;
  std::vector<Known> known_;
};

}  // namespace lintel

// The ways of long messages from and to memory of devices: counted for PTL_STATS, and logged at the
// first message with each peer. Message path.
#pragma once

#include <cstdint>

#include "transport/polling.h"
#include "util/counter.h"

namespace lintel {

struct Peer;

enum class DeviceWay : uint8_t {
  copied,    // the device copies from or to memory of a device of the other process
  mapped,    // copies between a mapping of the other process' memory and buffers of the host
  accessed,  // the network accesses the memory
  staged,    // copies between the memory and buffers of the host
};
inline constexpr unsigned device_ways = 4;

class DeviceWays {
 public:
  struct Traffic {
    Counter messages;
    Counter bytes;
  };
  // `why`: why no earlier way was taken; constant text, may be empty.
  void note(Peer& peer, DeviceWay way, uint64_t bytes, const char* why) noexcept
      LINTEL_REQUIRES(polling);
  [[nodiscard]] const Traffic& of(DeviceWay way) const noexcept {
    return traffic_[static_cast<unsigned>(way)];
  }

 private:
  Traffic traffic_[device_ways];
};

}  // namespace lintel

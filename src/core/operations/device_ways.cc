#include "core/operations/device_ways.h"

#include "core/operations/peer.h"
#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

namespace {

constexpr const char* way_texts[device_ways] = {
    "the device copies",
    "through buffers of the host, from or to a mapping of the memory",
    "by remote access",
    "through buffers of the host",
};

}  // namespace

void DeviceWays::note(Peer& peer, DeviceWay way, uint64_t bytes, const char* why) noexcept {
  const auto index = static_cast<unsigned>(way);
  traffic_[index].messages.increment();
  traffic_[index].bytes.add(bytes);
  const auto bit = static_cast<uint8_t>(1u << index);
  if ((peer.long_messages.device_ways & bit) != 0) return;
  peer.long_messages.device_ways |= bit;
  log_message(LogLevel::info, "memory of devices, messages with %s by %s: %s%s%s",
              ProcessText(peer.id.nid, peer.id.pid).c_str(),
              peer.route.transport->capabilities().name, way_texts[index],
              *why == '\0' ? "" : ", since ", why);
}

}  // namespace lintel

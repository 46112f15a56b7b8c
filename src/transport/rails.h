// What links with several ports have in common. Message path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "transport/packet_link.h"

namespace lintel {

// Name of a port in LinkProperties::device of a link with several.
[[nodiscard]] inline std::string_view name_of_rail(std::string_view devices,
                                                   unsigned rail) noexcept {
  for (; rail != 0 && !devices.empty(); --rail)
    devices.remove_prefix(std::min(devices.find('+'), devices.size() - 1) + 1);
  return devices.substr(0, devices.find('+'));
}

// send(rail, frames, count) for neighbouring frames of one rail. See PacketLink::send().
template <typename Send>
[[nodiscard]] unsigned send_by_rails(const OutboundFrame* frames, unsigned count,
                                     const Send& send) noexcept {
  unsigned taken = 0;
  while (taken < count) {
    const uint8_t rail = frames[taken].to->rail();
    unsigned end = taken + 1;
    while (end < count && frames[end].to->rail() == rail) ++end;
    taken += send(rail, frames + taken, end - taken);
    if (taken != end) break;
  }
  return taken;
}

// receive() of all rails. `first`: the one that is asked first.
template <typename Rails>
[[nodiscard]] unsigned receive_by_rails(const Rails& rails, unsigned& first, InboundFrame* frames,
                                        unsigned max) noexcept {
  unsigned count = 0;
  for (unsigned i = 0; i < rails.size() && count < max; ++i)
    count += rails[(first + i) % rails.size()]->receive(frames + count, max - count);
  if (count == max) ++first;
  return count;
}

// counters() of all rails. Any thread.
template <typename Rails>
[[nodiscard]] LinkCounters counters_of_rails(const Rails& rails) noexcept {
  LinkCounters all;
  for (size_t i = 0; i < rails.size(); ++i) {
    const LinkCounters one = rails[i]->counters();
    all.frames_sent += one.frames_sent;
    all.bytes_sent += one.bytes_sent;
    all.frames_received += one.frames_received;
    all.bytes_received += one.bytes_received;
    all.send_full += one.send_full;
    all.send_errors += one.send_errors;
    all.frames_malformed += one.frames_malformed;
    if (i != 0) all.rail_bytes[i - 1] = one.bytes_sent;
  }
  return all;
}

// The least of a value of all rails.
template <typename Rails, typename Value>
[[nodiscard]] uint32_t least_of_rails(const Rails& rails, const Value& value) {
  uint32_t least = UINT32_MAX;
  for (const auto& rail : rails) least = std::min<uint32_t>(least, value(*rail));
  return least;
}

}  // namespace lintel

// What links with several ports have in common. Message path.
#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "transport/packet_link.h"
#include "util/descriptor.h"
#include "util/new_descriptor.h"

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

// Path into sleep. arm() of all rails. If one has something to do, none stays armed.
template <typename Rails>
[[nodiscard]] bool arm_rails(const Rails& rails) noexcept {
  for (size_t i = 0; i < rails.size(); ++i) {
    if (rails[i]->arm()) continue;
    while (i != 0) rails[--i]->disarm();
    return false;
  }
  return true;
}

// Set-up path. Makes `joined` readable when that descriptor is. False: errno says why not.
[[nodiscard]] inline bool join_descriptor(Descriptor& joined, int descriptor) noexcept {
  if (!joined.is_open()) joined = make_epoll();
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
  return epoll_ctl(joined.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

// The least of a value of all rails.
template <typename Rails, typename Value>
[[nodiscard]] uint32_t least_of_rails(const Rails& rails, const Value& value) {
  uint32_t least = UINT32_MAX;
  for (const auto& rail : rails) least = std::min<uint32_t>(least, value(*rail));
  return least;
}

}  // namespace lintel

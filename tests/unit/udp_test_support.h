// Links over UDP sockets of the loopback, for tests. Set-up path.
#pragma once

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shm_test_support.h"
#include "udp/udp_link.h"

namespace lintel::test {

// Tries pids until one has a free port.
inline std::unique_ptr<UdpLink> open_link(const std::string& interface = "lo",
                                          uint32_t frame_bytes = 0) {
  static uint32_t next = 20000 + static_cast<uint32_t>(getpid()) % 10000;
  UdpSettings settings;
  settings.host = find_udp_host(interface);
  settings.frame_bytes = frame_bytes;
  std::unique_ptr<UdpLink> link;
  std::string reason;
  for (unsigned tries = 0; tries < 1000; ++tries) {
    settings.pid = next++;
    const OpenStatus status = UdpLink::open(settings, link, reason);
    if (status != OpenStatus::pid_in_use) break;
  }
  EXPECT_NE(link, nullptr) << reason;
  return link;
}

struct Arrived {
  LinkAddress from;
  std::vector<std::byte> bytes;
};

inline std::vector<Arrived> receive(UdpLink& link, size_t count) {
  std::vector<Arrived> all;
  EXPECT_TRUE(wait_until([&] {
    InboundFrame frames[32];
    const unsigned got = link.receive(frames, 32);
    for (unsigned i = 0; i < got; ++i)
      all.push_back({*frames[i].from, {frames[i].data, frames[i].data + frames[i].length}});
    return all.size() >= count;
  }));
  return all;
}

inline Route route_between(UdpLink& from, const UdpLink& to) {
  Route route;
  std::string reason;
  EXPECT_EQ(from.resolve(to.id(), route, &reason), ResolveStatus::resolved) << reason;
  EXPECT_EQ(route.address, to.own_address());
  return route;
}

}  // namespace lintel::test

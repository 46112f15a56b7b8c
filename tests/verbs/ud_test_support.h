// Links over the stand-in for libibverbs. Set-up path.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "loopback_test_support.h"
#include "support/fake_verbs/fake_verbs.h"
#include "verbs/ud_link.h"

namespace lintel::test {

struct UdSide {
  std::shared_ptr<VerbsDevice> device;
  std::unique_ptr<UdLink> link;
};

// Opens a link with a free pid. `device`: its name; empty: the first device. `further`: names of
// its further rails.
[[nodiscard]] inline UdSide open_ud(const std::string& device = "", uint32_t receive_buffers = 256,
                                    const std::vector<std::string>& further = {}) {
  UdSide side;
  std::string reason;
  VerbsPortWish wish;
  wish.device = device;
  wish.further = further;
  const VerbsDevices devices = VerbsDevice::open_all(wish, reason);
  EXPECT_FALSE(devices.empty()) << reason;
  if (devices.empty()) return side;
  side.device = devices[0];
  with_free_pid([&](uint32_t pid) {
    UdSettings settings;
    settings.id = {side.device->nid, pid};
    settings.receive_buffers = receive_buffers;
    return UdLink::open(devices, settings, side.link, reason) != OpenStatus::pid_in_use;
  });
  EXPECT_NE(side.link, nullptr) << reason;
  return side;
}

[[nodiscard]] inline Route route_between(UdLink& from, const UdLink& to) {
  Route route;
  std::string reason;
  ResolveStatus status = ResolveStatus::pending;
  EXPECT_TRUE(wait_until([&] {
    status = from.resolve(to.id(), route, &reason);
    return status != ResolveStatus::pending;
  }));
  EXPECT_EQ(status, ResolveStatus::resolved) << reason;
  return route;
}

struct ArrivedFrame {
  LinkAddress from;
  std::vector<std::byte> bytes;
};

// Appends the frames that one call of receive() returns.
inline unsigned receive_some(UdLink& link, std::vector<ArrivedFrame>& all, unsigned max = 64) {
  InboundFrame frames[PacketLink::largest_burst];
  const unsigned got = link.receive(frames, max);
  for (unsigned i = 0; i < got; ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(frames[i].data) % 8, 0u);
    all.push_back({*frames[i].from, {frames[i].data, frames[i].data + frames[i].length}});
  }
  return got;
}

[[nodiscard]] inline std::vector<ArrivedFrame> receive_all(UdLink& link, size_t count) {
  std::vector<ArrivedFrame> all;
  EXPECT_TRUE(wait_until([&] {
    receive_some(link, all);
    return all.size() >= count;
  }));
  return all;
}

// Sends frames that consist of one piece each.
[[nodiscard]] inline unsigned send_frames(UdLink& link, const LinkAddress& to,
                                          std::vector<std::vector<std::byte>>& bytes) {
  std::vector<Piece> pieces;
  std::vector<OutboundFrame> frames;
  for (std::vector<std::byte>& frame : bytes) pieces.push_back({frame.data(), frame.size()});
  for (const Piece& piece : pieces) frames.push_back({&to, &piece, 1});
  return link.send(frames.data(), static_cast<unsigned>(frames.size()));
}

inline unsigned send_frame(UdLink& link, const LinkAddress& to, std::vector<std::byte> bytes) {
  std::vector<std::vector<std::byte>> one{std::move(bytes)};
  return send_frames(link, to, one);
}

}  // namespace lintel::test

// Sockets that are connected to processes of this node, for sending to them: the kernel then looks
// up the route once, and not for each datagram. The first peers get one; the others are reached
// through the socket of the process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "transport/packet_link.h"
#include "udp/udp_socket.h"
#include "util/descriptor.h"

namespace lintel {

class UdpPeerSockets {
 public:
  static constexpr unsigned most = 32;

  explicit UdpPeerSockets(const UdpSocket& socket) noexcept : socket_(socket) {}
  UdpPeerSockets(const UdpPeerSockets&) = delete;
  UdpPeerSockets& operator=(const UdpPeerSockets&) = delete;

  // Connection path; any thread. A peer that has one keeps it until the link is closed.
  void connect(const LinkAddress& to) noexcept;
  // Message path; any thread. -1: the peer has none.
  [[nodiscard]] int find(const LinkAddress& to) const noexcept {
    for (size_t at = place_of(to);; at = (at + 1) % places) {
      const int descriptor = entries_[at].descriptor.load(std::memory_order_acquire);
      if (descriptor < 0 || entries_[at].to == to) return descriptor;
    }
  }

 private:
  static constexpr size_t places = 2 * most;  // some are always free, and end the search
  struct Entry {
    std::atomic<int> descriptor{-1};  // stored last
    LinkAddress to;
    Descriptor owner;
  };

  // Processes of a node differ in the port.
  [[nodiscard]] static size_t place_of(const LinkAddress& to) noexcept {
    return (static_cast<size_t>(to.bytes[2]) << 8 | static_cast<size_t>(to.bytes[3])) % places;
  }

  const UdpSocket& socket_;
  std::array<Entry, places> entries_;
  std::mutex mutex_;  // connect()
  unsigned count_ = 0;
};

}  // namespace lintel

// The socket of a process: its port, its buffers, whether its datagrams may be fragmented, and what
// the network reported about them. Set-up and connection path.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "transport/open_status.h"
#include "udp/udp_address.h"
#include "udp/udp_rails.h"

namespace lintel {

class UdpSocket {
 public:
  // LinkAddress::rail() of frames whose source the kernel chooses rightly. 0: the first rail's
  // address; i: that of rail i, and its interface.
  static constexpr uint8_t plain_rail = 0xff;

  UdpSocket(const NodeIdentity& host, const UdpRails& rails) : host_(host), rails_(rails) {}
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;
  ~UdpSocket();

  // Takes the port of the pid: on all addresses of the node if there are several rails. `reason`
  // explains what is not `opened`.
  [[nodiscard]] OpenStatus open(uint32_t pid, std::string& reason);

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const NodeIdentity& host() const noexcept { return host_; }
  [[nodiscard]] const UdpRails& rails() const noexcept { return rails_; }
  [[nodiscard]] bool has_rails() const noexcept { return !rails_.ports.empty(); }
  [[nodiscard]] bool is_own(const IpAddress& address) const noexcept;
  // Whether frames to that address are to name their source, and which.
  [[nodiscard]] bool names_source(const LinkAddress& to) const noexcept {
    return has_rails() && to.rail() != plain_rail;
  }
  [[nodiscard]] const UdpRail& source_of(const LinkAddress& to) const noexcept {
    return rails_.ports[to.rail() < rails_.ports.size() ? to.rail() : 0];
  }
  // Whether the kernel takes the address of the first rail as the source of frames to that one.
  [[nodiscard]] bool is_source_for(const LinkAddress& to) const noexcept;
  [[nodiscard]] socklen_t address_bytes() const noexcept { return udp_address_bytes(host_); }
  // False: the kernel does not have the option, or refuses the value.
  bool set_option(int level, int name, int value) const noexcept;
  // Bytes of datagrams that fit into the receive buffer.
  [[nodiscard]] uint64_t receive_capacity_bytes() const noexcept;
  // The payload of the longest datagram that the route takes in one piece; 0 with errno: no route.
  [[nodiscard]] uint32_t route_payload_bytes(const LinkAddress& to) const noexcept;

  // Any thread: from now on, datagrams may be longer than a path takes. False: they already may.
  bool permit_fragments() noexcept;

  // Any thread: a call failed with an error that waits in the error queue of the socket.
  void note_error() noexcept { errors_pending_.store(true, std::memory_order_release); }
  // The poller: empties that queue. As long as it holds an error, the descriptor is readable.
  void drain_errors() noexcept;
  // The poller: see PacketLink::take_unreachable().
  [[nodiscard]] unsigned take_unreachable(LinkAddress* addresses, unsigned max) noexcept;

 private:
  void take_error(msghdr& message, const LinkAddress& to) noexcept;
  [[nodiscard]] int ip_level() const noexcept { return host_.ipv6 ? IPPROTO_IPV6 : IPPROTO_IP; }
  void set_path_discovery(bool fragments) const noexcept;
  void ask_for_buffers() const noexcept;

  const NodeIdentity host_;
  const UdpRails rails_;
  int descriptor_ = -1;
  std::atomic<bool> fragments_{false};
  std::atomic<bool> errors_pending_{false};
  std::array<LinkAddress, 16> unreachable_;
  unsigned unreachable_count_ = 0;
};

// Finds the system calls on sockets that a filter denies, as the seccomp profiles of some
// containers do. Set-up path.
struct UdpCalls {
  bool receives_one = true;      // recvfrom
  bool receives_several = true;  // recvmmsg
  bool sends_several = true;     // sendmmsg

  // Tests the system calls on a bound socket. False: datagrams cannot be sent or received at all;
  // `reason` says why not and what to do. Logs what is slower than it could be.
  [[nodiscard]] bool probe(int socket, std::string& reason);
};

}  // namespace lintel

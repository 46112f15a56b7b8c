// Opening the socket, its port and its buffers; routes to peers. Set-up and connection path.
#include <netinet/udp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "portals4.h"
#include "udp/udp_link.h"
#include "util/descriptors_in_children.h"

namespace lintel {

namespace {

// Where routes take more, as the loopback does: two of them make one datagram that the kernel cuts up,
// or hands over in one piece (see UdpLink::segmented_bytes).
constexpr uint32_t largest_frame = 32448;
constexpr uint32_t largest_payload = 65507;
constexpr uint32_t joined_bytes = 65536;
constexpr int wanted_buffer_bytes = 4 << 20;

std::string error_text(const char* what) { return std::string(what) + ": " + strerror(errno); }

uint32_t ip_and_udp_bytes(bool ipv6) noexcept { return ipv6 ? 40 + 8 : 20 + 8; }

int set_option(int socket, int level, int name, int value) noexcept {
  return setsockopt(socket, level, name, &value, sizeof value);
}

}  // namespace

OpenStatus UdpLink::open(const UdpSettings& settings, std::unique_ptr<UdpLink>& result,
                         std::string& reason) {
  if (!settings.host.found) {
    reason = settings.host.reason;
    return OpenStatus::failed;
  }
  std::unique_ptr<UdpLink> link(new UdpLink);
  link->properties_.name = "udp";
  link->properties_.sends_from_anywhere = true;
  link->properties_.receives_by_system_call = true;
  link->host_ = settings.host;
  link->properties_.id.nid = settings.host.nid;
  const uint32_t wanted =
      settings.frame_bytes == 0 ? largest_frame : std::min(settings.frame_bytes, largest_payload);
  link->properties_.mtu = std::max(wanted, least_mtu);
  if (!link->open_socket(reason)) return OpenStatus::failed;
  link->properties_.descriptor = link->socket_;

  const OpenStatus status = link->bind_pid(settings.pid, reason);
  if (status == OpenStatus::opened) result = std::move(link);
  return status;
}

bool UdpLink::open_socket(std::string& reason) noexcept {
  socket_ = socket(host_.ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) {
    reason = error_text("socket");
    return false;
  }
  close_in_children(socket_);
  const int level = host_.ipv6 ? static_cast<int>(IPPROTO_IPV6) : static_cast<int>(IPPROTO_IP);
  // Tells of ports where nobody listens.
  set_option(socket_, level, host_.ipv6 ? IPV6_RECVERR : IP_RECVERR, 1);
  permit_fragments(false);
  // Not now: see adapt_joining().
  can_join_ = set_option(socket_, SOL_UDP, UDP_GRO, 0) == 0;
  // Asks for nothing, but fails where the kernel knows nothing of it.
  segments_ = set_option(socket_, SOL_UDP, UDP_SEGMENT, 0) == 0;
  set_buffers();
  buffer_bytes_ = can_join_ ? joined_bytes : (properties_.mtu + 63) & ~63u;
  void* memory = mmap(nullptr, buffer_bytes_ * largest_receive, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    reason = "no memory";
    return false;
  }
  buffers_ = static_cast<std::byte*>(memory);
  return true;
}

// A path that turns out to be narrower than the route fragments, rather than losing everything. Within the
// node there is no such path, and IPv4 datagrams that nobody may fragment need no number of the kernel's.
void UdpLink::permit_fragments(bool permit) noexcept {
  fragments_.store(permit, std::memory_order_relaxed);
  if (host_.ipv6)
    set_option(socket_, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT);
  else
    set_option(socket_, IPPROTO_IP, IP_MTU_DISCOVER, permit ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO);
}

// As large as the administrator permits (net.core.rmem_max, wmem_max); root may go beyond.
void UdpLink::set_buffers() noexcept {
  if (set_option(socket_, SOL_SOCKET, SO_RCVBUFFORCE, wanted_buffer_bytes) != 0)
    set_option(socket_, SOL_SOCKET, SO_RCVBUF, wanted_buffer_bytes);
  if (set_option(socket_, SOL_SOCKET, SO_SNDBUFFORCE, wanted_buffer_bytes) != 0)
    set_option(socket_, SOL_SOCKET, SO_SNDBUF, wanted_buffer_bytes);
  int granted = 0;
  socklen_t length = sizeof granted;
  getsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &granted, &length);
  // The kernel counts its own records too, and doubles what was asked for to make up for that.
  properties_.receive_capacity_bytes =
      std::max<uint64_t>(static_cast<uint64_t>(granted) / 2, properties_.mtu);
}

OpenStatus UdpLink::bind_pid(uint32_t pid, std::string& reason) noexcept {
  const LinkAddress address = udp_address_of(host_, {host_.nid, pid});
  properties_.id.pid = pid;
  properties_.own_address = address;
  if (bind(socket_, reinterpret_cast<const sockaddr*>(address.bytes.data()),
           udp_address_bytes(host_)) == 0)
    return OpenStatus::opened;
  reason = error_text(("bind " + udp_address_text(address)).c_str());
  return errno == EADDRINUSE ? OpenStatus::pid_in_use : OpenStatus::failed;
}

UdpLink::~UdpLink() {
  if (socket_ >= 0) {
    forget_in_children(socket_);
    close(socket_);
  }
  if (buffers_ != nullptr) munmap(buffers_, buffer_bytes_ * largest_receive);
}

// What goes to an address of this very node passes the loopback, whose frames are long.
uint32_t UdpLink::route_mtu(const LinkAddress& to) const noexcept {
  const int probe = socket(host_.ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return 0;
  int mtu = 0;
  socklen_t length = sizeof mtu;
  const bool known =
      connect(probe, reinterpret_cast<const sockaddr*>(to.bytes.data()),
              udp_address_bytes(host_)) == 0 &&
      getsockopt(probe, host_.ipv6 ? static_cast<int>(IPPROTO_IPV6) : static_cast<int>(IPPROTO_IP),
                 host_.ipv6 ? IPV6_MTU : IP_MTU, &mtu, &length) == 0;
  close(probe);
  if (!known || mtu <= 0) return 0;
  const auto bytes = static_cast<uint32_t>(mtu);
  const uint32_t overhead = ip_and_udp_bytes(host_.ipv6);
  return bytes < least_mtu + overhead ? least_mtu : std::min(bytes - overhead, properties_.mtu);
}

// Addresses of nobody, or of everybody.
bool UdpLink::can_be_a_process(ProcessId peer) const noexcept {
  if (peer.pid >= PTL_PID_MAX) return false;
  return host_.ipv6 ||
         (peer.nid != INADDR_ANY && !IN_MULTICAST(peer.nid) && !IN_BADCLASS(peer.nid));
}

ResolveStatus UdpLink::resolve(ProcessId peer, Route& route, std::string* reason) noexcept {
  if (!can_be_a_process(peer)) {
    if (reason != nullptr) *reason = "no process has such an address";
    return ResolveStatus::unreachable;
  }
  if (peer.nid != properties_.id.nid && !fragments_.load(std::memory_order_relaxed))
    permit_fragments(true);
  route.address = udp_address_of(host_, peer);
  route.mtu = route_mtu(route.address);
  if (route.mtu != 0) return ResolveStatus::resolved;
  if (reason != nullptr) {
    const int error = errno;
    try {
      *reason = "no route to " + udp_address_text(route.address) + " (" + strerror(error) + ")";
    } catch (...) {
      reason->clear();
    }
  }
  return ResolveStatus::unreachable;
}

bool UdpLink::adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept {
  return resolve(peer, route, nullptr) == ResolveStatus::resolved && route.address == from;
}

std::string UdpLink::describe() const {
  const bool segments = segments_.load(std::memory_order_relaxed);
  return udp_address_text(own_address()) + " (" + host_.reason + "), frames of up to " +
         std::to_string(properties_.mtu) + " bytes, " +
         std::to_string(properties_.receive_capacity_bytes / 1024) + " KiB of receive buffer, " +
         (segments && can_join_ ? "segmentation and joining by the kernel"
          : segments            ? "segmentation by the kernel"
          : can_join_           ? "joining by the kernel"
                                : "no help of the kernel with segments");
}

}  // namespace lintel

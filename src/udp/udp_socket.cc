// Options of the socket, questions to the kernel, and its error queue.
#include "udp/udp_socket.h"

#include <linux/errqueue.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "util/log.h"
#include "util/new_descriptor.h"
#include "util/text.h"
#include "util/without_cancellation.h"

namespace lintel {

namespace {

constexpr int wanted_buffer_bytes = 4 << 20;
// Maximum number of entries of the error queue that are read at a time. Further entries keep the
// descriptor readable.
constexpr unsigned most_errors_read = 64;

std::string error_text(const std::string& what) { return what + ": " + strerror(errno); }

const sockaddr* socket_address(const LinkAddress& address) noexcept {
  return reinterpret_cast<const sockaddr*>(address.bytes.data());
}

// The error of a call that does nothing. Only a filter, or another kernel, answers these.
bool is_denied(long result) noexcept {
  return result < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS);
}

std::string denial(const char* call) {
  return text_of(call, " is denied (", strerror(errno),
                 "); permit it in the seccomp profile of the container");
}

// False: it is denied, and that is logged.
bool permits(const char* call, long result) {
  if (!is_denied(result)) return true;
  log_message(LogLevel::warn, "udp: %s; until then datagrams go one by one", denial(call).c_str());
  return false;
}

}  // namespace

OpenStatus UdpSocket::open(uint32_t pid, std::string& reason) {
  descriptor_ = open_socket(host_.ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK).release();
  if (descriptor_ < 0) return explained(OpenStatus::failed, reason, error_text("socket"));
  close_in_children(descriptor_);
  // Reports ports where no socket is open.
  set_option(ip_level(), host_.ipv6 ? IPV6_RECVERR : IP_RECVERR, 1);
  set_path_discovery(false);
  ask_for_buffers();
  const LinkAddress address =
      has_rails() ? udp_address_at(host_, {}, pid) : udp_address_of(host_, {host_.nid, pid});
  if (bind(descriptor_, socket_address(address), address_bytes()) == 0) return OpenStatus::opened;
  const int error = errno;
  reason = error_text("bind " + udp_address_text(address));
  return error == EADDRINUSE ? OpenStatus::pid_in_use : OpenStatus::failed;
}

UdpSocket::~UdpSocket() {
  if (descriptor_ < 0) return;
  forget_in_children(descriptor_);
  close(descriptor_);
}

bool UdpSocket::set_option(int level, int name, int value) const noexcept {
  return setsockopt(descriptor_, level, name, &value, sizeof value) == 0;
}

// Requests buffers as large as the administrator permits (net.core.rmem_max, wmem_max); root may
// exceed these limits.
void UdpSocket::ask_for_buffers() const noexcept {
  if (!set_option(SOL_SOCKET, SO_RCVBUFFORCE, wanted_buffer_bytes))
    set_option(SOL_SOCKET, SO_RCVBUF, wanted_buffer_bytes);
  if (!set_option(SOL_SOCKET, SO_SNDBUFFORCE, wanted_buffer_bytes))
    set_option(SOL_SOCKET, SO_SNDBUF, wanted_buffer_bytes);
}

// The kernel doubles the requested size, as it counts its own records too.
uint64_t UdpSocket::receive_capacity_bytes() const noexcept {
  int granted = 0;
  socklen_t length = sizeof granted;
  getsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &granted, &length);
  return static_cast<uint64_t>(granted) / 2;
}

// Datagrams longer than the path are lost, unless fragments are permitted: the reliability layer
// finds out what a path takes (RFC 8899, 3: probes must not be fragmented), and a lost fragment
// would cost a whole frame. What routers report, which may be forged, changes nothing. An IPv4
// datagram that must not be fragmented spares the kernel its identification.
void UdpSocket::set_path_discovery(bool fragments) const noexcept {
  if (host_.ipv6) {
    set_option(IPPROTO_IPV6, IPV6_MTU_DISCOVER,
               fragments ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_PROBE);
    set_option(IPPROTO_IPV6, IPV6_DONTFRAG, fragments ? 0 : 1);
  } else {
    set_option(IPPROTO_IP, IP_MTU_DISCOVER, fragments ? IP_PMTUDISC_DONT : IP_PMTUDISC_PROBE);
  }
}

bool UdpSocket::permit_fragments() noexcept {
  if (fragments_.exchange(true, std::memory_order_relaxed)) return false;
  set_path_discovery(true);
  return true;
}

uint32_t UdpSocket::route_payload_bytes(const LinkAddress& to) const noexcept {
  const WithoutCancellation scope;
  const Descriptor probe = open_socket(host_.ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM);
  int mtu = 0;
  socklen_t length = sizeof mtu;
  if (connect(probe.get(), socket_address(to), address_bytes()) != 0) return 0;
  // An emulated kernel may have a route and not tell how long its packets are: as short as any.
  constexpr int least_mtu = 1280;
  if (getsockopt(probe.get(), ip_level(), host_.ipv6 ? IPV6_MTU : IP_MTU, &mtu, &length) != 0)
    mtu = errno == ENOPROTOOPT ? least_mtu : 0;
  const int ip_and_udp_bytes = (host_.ipv6 ? 40 : 20) + 8;
  if (mtu <= 0) return 0;
  return mtu <= ip_and_udp_bytes ? 1 : static_cast<uint32_t>(mtu - ip_and_udp_bytes);
}

bool UdpSocket::is_own(const IpAddress& address) const noexcept {
  return std::any_of(rails_.ports.begin(), rails_.ports.end(),
                     [&](const UdpRail& rail) { return rail.address == address; });
}

bool UdpSocket::is_source_for(const LinkAddress& to) const noexcept {
  const WithoutCancellation scope;
  const Descriptor probe = open_socket(host_.ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM);
  sockaddr_in6 own{};
  socklen_t length = sizeof own;
  return connect(probe.get(), socket_address(to), address_bytes()) == 0 &&
         getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
         ip_address_of(reinterpret_cast<const sockaddr&>(own)) == ip_address_of(host_, host_.nid);
}

void UdpSocket::drain_errors() noexcept {
  const WithoutCancellation scope;
  // An error whose note this overwrites is in the queue, and is read below.
  errors_pending_.exchange(false, std::memory_order_acquire);
  for (unsigned i = 0; i < most_errors_read; ++i) {
    LinkAddress to;
    alignas(cmsghdr) char control[256];
    msghdr message{};
    message.msg_name = to.bytes.data();
    message.msg_namelen = sizeof to.bytes;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(descriptor_, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    // An emulated kernel may not have the queue, and return something else each time.
    if ((message.msg_flags & MSG_ERRQUEUE) == 0) return;
    take_error(message, to);
  }
}

void UdpSocket::take_error(msghdr& message, const LinkAddress& to) noexcept {
  const int type = host_.ipv6 ? IPV6_RECVERR : IP_RECVERR;
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != ip_level() || control->cmsg_type != type) continue;
    sock_extended_err error;
    std::memcpy(&error, CMSG_DATA(control), sizeof error);
    // Only the node itself reports that a port is closed. EHOSTUNREACH and ENETUNREACH also come
    // from a neighbour search without an answer, as while a link is down.
    if (error.ee_errno == ECONNREFUSED && unreachable_count_ < unreachable_.size())
      unreachable_[unreachable_count_++] = to;
    return;
  }
}

// An address that does not fit is reported again when the next datagram is sent there.
unsigned UdpSocket::take_unreachable(LinkAddress* addresses, unsigned max) noexcept {
  if (errors_pending_.load(std::memory_order_relaxed)) drain_errors();
  const unsigned taken = std::min(unreachable_count_, max);
  std::copy_n(unreachable_.begin(), taken, addresses);
  unreachable_count_ = 0;
  return taken;
}

bool UdpCalls::probe(int socket, std::string& reason) {
  constexpr int peek = MSG_DONTWAIT | MSG_PEEK;
  std::byte byte;
  // Without a message the call fails in any case, with another error than that of a filter.
  if (is_denied(syscall(SYS_sendmsg, socket, nullptr, MSG_DONTWAIT)))
    return explained(false, reason, denial("sendmsg"));
  receives_one = !is_denied(syscall(SYS_recvfrom, socket, &byte, 1, peek, nullptr, nullptr));
  const long several = syscall(SYS_recvmmsg, socket, nullptr, 0, peek, nullptr);
  if (!receives_one && is_denied(several))
    return explained(false, reason, denial("recvfrom, like recvmmsg,"));
  receives_several = permits("recvmmsg", several);
  sends_several = permits("sendmmsg", syscall(SYS_sendmmsg, socket, nullptr, 0, MSG_DONTWAIT));
  return true;
}

}  // namespace lintel

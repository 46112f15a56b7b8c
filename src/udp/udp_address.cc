// Choosing and composing socket addresses. Set-up and connection path.
#include "udp/udp_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <cstddef>
#include <cstring>
#include <memory>

#include "util/node_identity.h"

namespace lintel {

namespace {

using InterfaceList = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

InterfaceList list_interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  return {list, &freeifaddrs};
}

NodeIdentity host_of(const sockaddr& address) {
  NodeIdentity host;
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    const in_addr ipv4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    host.nid = ntohl(ipv4.s_addr);
    inet_ntop(AF_INET, &ipv4, text, sizeof text);
  } else {
    const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
    host.ipv6 = true;
    host.address = ipv6.sin6_addr;
    host.scope = ipv6.sin6_scope_id;
    host.nid = last_word(ipv6.sin6_addr);
    inet_ntop(AF_INET6, &ipv6.sin6_addr, text, sizeof text);
  }
  host.reason = text;
  return host;
}

bool has_address(const sockaddr* address, const std::string& wanted) {
  in6_addr bytes;
  if (address->sa_family == AF_INET && inet_pton(AF_INET, wanted.c_str(), &bytes) == 1)
    return std::memcmp(&bytes, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr,
                       sizeof(in_addr)) == 0;
  if (address->sa_family == AF_INET6 && inet_pton(AF_INET6, wanted.c_str(), &bytes) == 1)
    return std::memcmp(&bytes, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr,
                       sizeof(in6_addr)) == 0;
  return false;
}

// An IPv4 address of a named interface is preferred, then a global IPv6 one.
int preference(const ifaddrs& entry, const std::string& wanted) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return 0;
  const int family = entry.ifa_addr->sa_family;
  if (family != AF_INET && family != AF_INET6) return 0;
  if (has_address(entry.ifa_addr, wanted)) return 4;
  if (wanted != entry.ifa_name) return 0;
  if (family == AF_INET) return 3;
  const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
  return IN6_IS_ADDR_LINKLOCAL(&address) ? 1 : 2;
}

}  // namespace

NodeIdentity find_udp_host(const std::string& wanted) {
  if (wanted.empty()) return find_node_identity();
  const InterfaceList list = list_interfaces();
  const ifaddrs* best = nullptr;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next)
    if (preference(*entry, wanted) > (best == nullptr ? 0 : preference(*best, wanted)))
      best = entry;
  if (best == nullptr) {
    NodeIdentity none;
    none.reason =
        "PTL_NID=" + wanted + ": no network interface that is up has this name or address";
    return none;
  }
  NodeIdentity host = host_of(*best->ifa_addr);
  host.interface = best->ifa_name;
  host.reason += ", an address of " + std::string(best->ifa_name) + " (PTL_NID)";
  return host;
}

socklen_t udp_address_bytes(const NodeIdentity& host) noexcept {
  return host.ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

IpAddress ip_address_of(const sockaddr& address) noexcept {
  IpAddress ip{};
  if (address.sa_family == AF_INET6) {
    std::memcpy(ip.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, ip.size());
  } else {
    ip[10] = ip[11] = 0xff;
    std::memcpy(&ip[12], &reinterpret_cast<const sockaddr_in&>(address).sin_addr, sizeof(in_addr));
  }
  return ip;
}

IpAddress ip_address_of(const LinkAddress& address) noexcept {
  sockaddr_in6 socket;
  std::memcpy(&socket, address.bytes.data(), sizeof socket);
  return ip_address_of(reinterpret_cast<const sockaddr&>(socket));
}

IpAddress ip_address_of(const NodeIdentity& host, uint32_t nid) noexcept {
  const sockaddr_in ipv4 = ipv4_address_of(nid, 0);
  IpAddress ip = ip_address_of(reinterpret_cast<const sockaddr&>(ipv4));
  if (host.ipv6) std::memcpy(ip.data(), &host.address, 12);
  return ip;
}

LinkAddress udp_address_at(const NodeIdentity& host, const IpAddress& ip, uint32_t pid) noexcept {
  LinkAddress result;
  sockaddr_in ipv4 = ipv4_address_of(0, pid);
  if (host.ipv6) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = ipv4.sin_port;
    std::memcpy(&address.sin6_addr, ip.data(), ip.size());
    address.sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr) ? host.scope : 0;
    std::memcpy(result.bytes.data(), &address, sizeof address);
  } else {
    std::memcpy(&ipv4.sin_addr, &ip[12], sizeof ipv4.sin_addr);
    std::memcpy(result.bytes.data(), &ipv4, sizeof ipv4);
  }
  return result;
}

LinkAddress udp_address_of(const NodeIdentity& host, ProcessId process) noexcept {
  return udp_address_at(host, ip_address_of(host, process.nid), process.pid);
}

LinkAddress udp_host_mask() noexcept {
  constexpr size_t place = offsetof(sockaddr_in, sin_port);
  static_assert(place == offsetof(sockaddr_in6, sin6_port));
  LinkAddress mask = LinkAddress::filled_with(std::byte{0xff});
  std::memset(mask.bytes.data() + place, 0, sizeof(in_port_t));
  return mask;
}

std::string ip_text(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  static constexpr IpAddress ipv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool is_ipv4 = std::memcmp(address.data(), ipv4.data(), 12) == 0;
  inet_ntop(is_ipv4 ? AF_INET : AF_INET6, &address[is_ipv4 ? 12 : 0], text, sizeof text);
  return text;
}

std::string udp_address_text(const LinkAddress& address) {
  sockaddr_in6 socket;
  std::memcpy(&socket, address.bytes.data(), sizeof socket);
  const std::string text = ip_text(ip_address_of(address));
  static_assert(offsetof(sockaddr_in6, sin6_port) == offsetof(sockaddr_in, sin_port));
  return (socket.sin6_family == AF_INET6 ? "[" + text + "]" : text) + ":" +
         std::to_string(ntohs(socket.sin6_port));
}

}  // namespace lintel

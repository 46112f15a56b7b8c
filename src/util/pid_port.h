// The address of a process on an IP network: its port for UDP and TCP, and whether a nid can be its
// IPv4 address.
#pragma once

#include <netinet/in.h>

#include <cstdint>

namespace lintel {

// The pid + 1024, as far as that goes; the last 1023 pids have the ports 1 to 1023, which need
// privileges.
[[nodiscard]] constexpr uint16_t port_of_pid(uint32_t pid) noexcept {
  constexpr uint32_t unprivileged_port = 1024;
  constexpr uint32_t unprivileged_pids = 65536 - unprivileged_port;
  return static_cast<uint16_t>(pid < unprivileged_pids ? pid + unprivileged_port
                                                       : pid - unprivileged_pids + 1);
}

[[nodiscard]] inline sockaddr_in ipv4_address_of(uint32_t nid, uint32_t pid) noexcept {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_of_pid(pid));
  address.sin_addr.s_addr = htonl(nid);
  return address;
}

// Not the address of nobody or of several.
[[nodiscard]] constexpr bool is_ipv4_host(uint32_t nid) noexcept {
  return nid != INADDR_ANY && !IN_MULTICAST(nid) && !IN_BADCLASS(nid);
}

}  // namespace lintel

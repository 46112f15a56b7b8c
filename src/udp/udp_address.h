// Addresses of UDP sockets: which one this process takes, and which one a process has by its nid
// and pid. Set-up and connection path.
//
// IPv4: the nid is the address. IPv6: the nid is the last 32 bits of the address, and all nodes of
// a job have the other 96 in common. The port: util/node_identity.h.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "transport/message.h"
#include "transport/packet_link.h"
#include "util/node_identity.h"

namespace lintel {

// An address of this node, without a port.
struct UdpHost {
  bool found = false;
  bool ipv6 = false;
  in6_addr address{};  // IPv4: in the first four bytes, as in sin_addr
  uint32_t scope = 0;  // scope of a link-local IPv6 address
  uint32_t nid = 0;
  std::string device;  // the network interface that has it
  std::string reason;  // reason of the choice, or why there is none
};

// `wanted` (PTL_NID) is the name of a network interface, an address of the node, or empty; then it
// is the address that is the nid of the node.
[[nodiscard]] UdpHost find_udp_host(const std::string& wanted);
// The address that is the nid of the node, where that is known already.
[[nodiscard]] UdpHost udp_host_of(const NodeIdentity& node);
[[nodiscard]] NodeIdentity node_identity_of(const UdpHost& host);

// The socket address of a process, in the network of `host`.
[[nodiscard]] LinkAddress udp_address_of(const UdpHost& host, ProcessId process) noexcept;
// LinkProperties::host_mask: all but the port.
[[nodiscard]] LinkAddress udp_host_mask() noexcept;
[[nodiscard]] socklen_t udp_address_bytes(const UdpHost& host) noexcept;

[[nodiscard]] std::string udp_address_text(const LinkAddress& address);

}  // namespace lintel

// Addresses of UDP sockets: which one this process takes, and which one a process has by its nid
// and pid. Set-up and connection path.
//
// IPv4: the nid is the address. IPv6: the nid is the last 32 bits of the address, and all nodes of
// a job have the other 96 in common. The port: util/node_identity.h.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>

#include "transport/message.h"
#include "transport/packet_link.h"
#include "util/node_identity.h"

namespace lintel {

// `wanted` (PTL_NID) is the name of a network interface, an address of the node, or empty; then it
// is the address that is the nid of the node. Its nid is 0 if there is none.
[[nodiscard]] NodeIdentity find_udp_host(const std::string& wanted);

// An IPv6 address, or an IPv4 address in the form ::ffff:a.b.c.d.
using IpAddress = std::array<uint8_t, 16>;
[[nodiscard]] IpAddress ip_address_of(const sockaddr& address) noexcept;
[[nodiscard]] IpAddress ip_address_of(const LinkAddress& address) noexcept;
// The one that is that nid, in the network of `host`.
[[nodiscard]] IpAddress ip_address_of(const NodeIdentity& host, uint32_t nid) noexcept;
// "10.0.0.1", "fd00::1"
[[nodiscard]] std::string ip_text(const IpAddress& address);

// The socket address of the process with that pid at an address of the family of `host`.
[[nodiscard]] LinkAddress udp_address_at(const NodeIdentity& host, const IpAddress& address,
                                         uint32_t pid) noexcept;
// The socket address of a process, in the network of `host`.
[[nodiscard]] LinkAddress udp_address_of(const NodeIdentity& host, ProcessId process) noexcept;
// LinkProperties::host_mask: all but the port.
[[nodiscard]] LinkAddress udp_host_mask() noexcept;
[[nodiscard]] socklen_t udp_address_bytes(const NodeIdentity& host) noexcept;

[[nodiscard]] std::string udp_address_text(const LinkAddress& address);

}  // namespace lintel

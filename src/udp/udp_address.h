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

// `wanted` (PTL_NID) is the name of a network interface, an address of the node, or empty; then it
// is the address that is the nid of the node. Its nid is 0 if there is none.
[[nodiscard]] NodeIdentity find_udp_host(const std::string& wanted);

// The socket address of a process, in the network of `host`.
[[nodiscard]] LinkAddress udp_address_of(const NodeIdentity& host, ProcessId process) noexcept;
// LinkProperties::host_mask: all but the port.
[[nodiscard]] LinkAddress udp_host_mask() noexcept;
[[nodiscard]] socklen_t udp_address_bytes(const NodeIdentity& host) noexcept;

[[nodiscard]] std::string udp_address_text(const LinkAddress& address);

}  // namespace lintel

// The ports of this node that UDP uses: that whose address is the nid, and further ones. Set-up
// path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "transport/packet_link.h"
#include "udp/udp_address.h"
#include "util/local_rank.h"
#include "util/node_identity.h"

namespace lintel {

struct UdpRail {
  std::string interface;
  int index = 0;  // of the interface; 0: it may be any
  IpAddress address{};
  IpAddress mask{};      // zero: no network is known
  uint32_t mtu = 0;      // of the interface
  bool is_near = false;  // to the processors of this process, or nothing is known
};

struct UdpRails {
  // The port of the nid, then the others in the order in which frames fill them; empty if there is
  // no other.
  std::vector<UdpRail> ports;
  uint8_t first_place = 0;    // of the port of the nid in that order
  uint8_t used = most_rails;  // number of rails by which frames go while they work
  std::string reason;         // which interfaces are used, which are not, and why
};

// Whether `wanted` is a value of PTL_RAILS: empty, auto, a number from 1 to most_rails, or names of
// interfaces of this host with commas between them.
[[nodiscard]] bool is_rail_choice(const std::string& wanted);

// `wanted`: see is_rail_choice(); empty: the interface of the nid alone. The processes of a node
// begin with different ones of the nearest interfaces, by their local rank.
[[nodiscard]] UdpRails find_udp_rails(const NodeIdentity& host, const std::string& wanted,
                                      const LocalRank& local);

// Whether that address is in the network of a port.
[[nodiscard]] bool shares_network(const UdpRail& port, const IpAddress& address) noexcept;
// Returns the host `address` in the network of a port.
[[nodiscard]] IpAddress same_host(const UdpRail& port, IpAddress address) noexcept;

}  // namespace lintel

// The ports of this node that UDP uses beside the one whose address is the nid: rails. Set-up path.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/packet_link.h"
#include "util/node_identity.h"

namespace lintel {

struct UdpRail {
  std::string interface;
  int index = 0;  // of the interface
  in_addr address{};
  in_addr mask{};
  uint32_t mtu = 0;      // of the interface
  bool is_near = false;  // to the processors of this process, or nothing is known
};

struct UdpRails {
  std::vector<UdpRail> further;  // the nearest first
  uint32_t first_mtu = 0;        // of the interface of the nid; 0: not known
  std::string reason;            // which interfaces are used, which are not, and why
};

// Whether `wanted` is a value of PTL_RAILS: auto, a number from 1 to most_rails, or names of
// interfaces of this host with commas between them.
[[nodiscard]] bool is_rail_choice(const std::string& wanted);

// `wanted`: see is_rail_choice().
[[nodiscard]] UdpRails find_udp_rails(const NodeIdentity& host, const std::string& wanted);

// Whether one of the processors in `text` ("0-3,8") is in `own`; true if `text` is no such list.
[[nodiscard]] bool shares_processor(std::string_view text, const std::vector<unsigned>& own);

}  // namespace lintel

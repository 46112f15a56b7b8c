// Chooses the device, port and GID of this node by the descriptions of all of them: nothing here
// calls libibverbs. Set-up path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "verbs/verbs_module.h"

namespace lintel {

enum class GidType : uint8_t { infiniband, roce_v1, roce_v2 };

// One row of the table of GIDs of a port.
struct PortGid {
  uint32_t index = 0;
  GidType type = GidType::infiniband;
  ibv_gid gid{};
  uint32_t interface_ipv4 = 0;  // address of the row's network interface; 0: none
  uint8_t network_bits = 128;   // of the GID, from the left, that name its network; 128: not known
};

struct PortDescription {
  std::string device;        // "mlx5_0"
  uint8_t port = 1;          // counted from 1
  bool is_ethernet = false;  // RoCE; otherwise InfiniBand
  ibv_port_state state = IBV_PORT_NOP;
  std::vector<PortGid> gids;
  uint32_t ipoib_ipv4 = 0;  // InfiniBand: address of the port's IPoIB interface; 0: none
  std::string fault;        // why the port cannot be used at all; empty: it can
  bool is_near = true;      // to the processors of this process, or nothing is known
};

struct PortChoice {
  bool found = false;
  size_t index = 0;      // index in the descriptions
  uint32_t gid_row = 0;  // row in the table of GIDs of that port
  uint32_t nid = 0;      // the IPv4 address of the port; 0: it has none
  std::string reason;    // why this one; or a sentence that says why there is none
};

// The IPv4 address in a GID of the form ::ffff:a.b.c.d, in host byte order; 0: it has another form.
[[nodiscard]] uint32_t ipv4_of(const ibv_gid& gid) noexcept;

// Whether the first bits of both are equal: those that name the network of one of them.
[[nodiscard]] bool shares_network(const ibv_gid& a, const ibv_gid& b, unsigned bits) noexcept;

// RoCE: version 2 with an IPv4 address first, then version 2 with others, then version 1 likewise;
// among equals the one with `nid`, then link-local addresses last, then the lowest index.
// InfiniBand: the first. `wanted_index` (if not negative) overrules all that. False: `reason` says
// why there is none.
[[nodiscard]] bool choose_gid(const PortDescription& port, int wanted_index, uint32_t nid,
                              uint32_t& row, std::string& reason);

// Returns the IPv4 address that is the nid of this port; 0: it has none.
[[nodiscard]] uint32_t nid_of(const PortDescription& port, uint32_t gid_row) noexcept;

// The port that `wish` names; else the active one with the address `wish.nid`; else the first
// active one.
[[nodiscard]] PortChoice choose_port(const std::vector<PortDescription>& ports,
                                     const VerbsPortWish& wish);

// The name of the port by which a process begins in place of that one: one of its network that is
// near, so that it reaches the same peers. The processes of a node take different ones.
[[nodiscard]] std::string nearest_port(const std::vector<PortDescription>& ports,
                                       const std::string& first, uint32_t local_rank);

// The names of other active ports of the same kind as that one, which are its rails: less than
// `most`, the near ones first.
[[nodiscard]] std::vector<std::string> further_ports(const std::vector<PortDescription>& ports,
                                                     const std::string& first, unsigned most);

// "mlx5_0:1"
[[nodiscard]] std::string port_name(const std::string& device, unsigned port);
// "RoCE v2 GID 3 (::ffff:192.168.77.1)"
[[nodiscard]] std::string gid_text(const PortGid& row);
[[nodiscard]] std::string gid_address_text(const ibv_gid& gid);  // "::ffff:192.168.77.1"

}  // namespace lintel

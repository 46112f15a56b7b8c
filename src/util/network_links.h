// The network interfaces that the kernel has in this namespace, and which of them cannot lead to
// another node. Set-up path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lintel {

struct NetworkLink {
  uint32_t index = 0;
  uint32_t master = 0;  // index of the bridge or bond that it is a port of; 0: of none
  std::string name;
  std::string kind;  // "bridge", "veth", "vlan", ...; empty: a device
};

// Reads the links by netlink, since the files of sysfs may show another namespace. Empty: the
// kernel gives no answer.
[[nodiscard]] std::vector<NetworkLink> read_network_links();

// A bridge without ports, or with ports to containers and virtual machines only (docker0, virbr0);
// a dummy. Its address is often the same on every machine.
[[nodiscard]] bool stays_on_node(const std::vector<NetworkLink>& links, const std::string& name);

}  // namespace lintel

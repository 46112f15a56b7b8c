// The ports of all RDMA devices of this node. Set-up path.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "verbs/port_choice.h"

namespace lintel {

// What was found, with the devices open. A device that cannot be opened is described as one port
// with its fault.
struct PortList {
  std::vector<PortDescription> ports;
  std::vector<std::shared_ptr<ibv_context>> contexts;  // of each port
  std::string reason;                                  // why there are none
};

// `only`: the name of a device, or empty.
[[nodiscard]] PortList list_ports(const std::string& only);

}  // namespace lintel

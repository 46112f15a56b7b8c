// The nid of this node: an IPv4 address by which others reach it (spec 2.3, 3.3.5). Set-up path.
#pragma once

#include <cstdint>
#include <string>

namespace lintel {

struct NodeIdentity {
  uint32_t nid = 0;    // the address in host byte order
  std::string reason;  // how it was chosen, for people
};

// The address of the interface with the default route; else of the first one that is up and not the
// loopback; else 127.0.0.1. Thread-safe.
[[nodiscard]] NodeIdentity find_node_identity();

// "192.168.77.1"
[[nodiscard, gnu::visibility("default")]] std::string nid_text(uint32_t nid);

}  // namespace lintel

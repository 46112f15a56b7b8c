// The nid of this node: an IPv4 address by which others reach it (spec 2.3, 3.3.5). Set-up path.
#pragma once

#include <cstdint>
#include <string>

namespace lintel {

struct NodeIdentity {
  uint32_t nid = 0;          // the address in host byte order
  std::string reason;        // how it was chosen, for people
  std::string interface {};  // the network interface that has it; empty: not known
};

// The address of the interface with the default route; else of the first one that is up and not the
// loopback; else 127.0.0.1. Thread-safe.
[[nodiscard]] NodeIdentity find_node_identity();

// As the kernel has it, without the domain.
[[nodiscard]] std::string host_name();

// "192.168.77.1"
[[nodiscard, gnu::visibility("default")]] std::string nid_text(uint32_t nid);

// "nid 192.168.77.1 pid 5" for log lines. Allocates nothing.
class [[gnu::visibility("default")]] ProcessText {
 public:
  ProcessText(uint32_t nid, uint32_t pid) noexcept;
  [[nodiscard]] const char* c_str() const noexcept { return text_; }

 private:
  char text_[40];
};

}  // namespace lintel

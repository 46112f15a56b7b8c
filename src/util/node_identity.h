// The nid of this node: an address by which others reach it (spec 2.3, 3.3.5); and the address of a
// process on an IP network. Set-up path.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lintel {

struct NodeIdentity {
  uint32_t nid = 0;          // the address in host byte order; of an IPv6 one the last 32 bits
  std::string reason;        // reason of the choice, as text
  std::string interface {};  // the network interface that has it; empty: not known
  bool ipv6 = false;
  in6_addr address{};  // IPv6 address
  uint32_t scope = 0;  // scope of a link-local IPv6 address

  [[nodiscard]] bool is_found() const noexcept { return nid != 0; }
};

// An address of a network interface that has carrier: of the one with the default route; else of
// the first one that others can reach, IPv4 before IPv6; then link-local ones and those that every
// machine has; else 127.0.0.1. Thread-safe.
[[nodiscard]] NodeIdentity find_node_identity();

// Why processes of other nodes cannot reach this one by its nid. Empty: nothing is known against
// it.
[[nodiscard, gnu::visibility("default")]] std::string why_not_reached(const NodeIdentity& node);

// The nid that stands for an IPv6 address.
[[nodiscard]] uint32_t last_word(const in6_addr& address) noexcept;

// Number of the running system, random at each start; the same in all containers. 0: not known.
[[nodiscard]] uint64_t number_of_machine();
// Number of the network namespace on that machine, within which an address names one interface.
[[nodiscard, gnu::visibility("default")]] uint64_t number_of_network();

// Name of the host in the kernel, without the domain.
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

// The pid + 1024, as far as that goes; the last 1023 pids have the ports 1 to 1023, which need
// privileges.
[[nodiscard]] constexpr uint16_t port_of_pid(uint32_t pid) noexcept {
  constexpr uint32_t unprivileged_port = 1024;
  constexpr uint32_t unprivileged_pids = 65536 - unprivileged_port;
  return static_cast<uint16_t>(pid < unprivileged_pids ? pid + unprivileged_port
                                                       : pid - unprivileged_pids + 1);
}

[[nodiscard]] inline sockaddr_in ipv4_address_of(uint32_t nid, uint32_t pid) noexcept {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_of_pid(pid));
  address.sin_addr.s_addr = htonl(nid);
  return address;
}

// An address of one host: neither 0.0.0.0 nor a multicast or broadcast address.
[[nodiscard]] constexpr bool is_ipv4_host(uint32_t nid) noexcept {
  return nid != INADDR_ANY && !IN_MULTICAST(nid) && !IN_BADCLASS(nid);
}

// A network interface that the kernel has in this namespace.
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

// The available transports, those that an interface uses, and why not the others. Set-up path.
//
// To add a transport: a class derived from Transport in a folder of its own, for which
// src/local/local_transport.h is the smallest example; a line in the table in registry.cc, with
// a function that opens it and one that explains it; the name in the row of PTL_TRANSPORT
// (src/util/config.cc); a line in tests/docs/arrows.txt; a configuration of the conformance suite
// (tests/CMakeLists.txt). If it needs another library, it is a module (cmake/modules.cmake).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reliable/reliable_transport.h"
#include "transport/opened_transports.h"
#include "udp/udp_rails.h"
#include "util/node_identity.h"
#include "wiring/device_choice.h"

// Exported for modules and programs of this version, see cmake/portals.map.in.
#pragma GCC visibility push(default)
namespace lintel {

struct TransportSettings {
  uint32_t interface_number = 0;  // PTL_IFACE_DEFAULT, or one of interface_numbers()
  uint32_t nid = 0;
  NodeIdentity udp_host;                 // address for UDP
  uint32_t pid = 0;                      // PTL_PID_ANY: one that is free on this node
  uint32_t uid = 0;                      // usage id of this process
  std::string job_key;                   // PTL_JOB_KEY
  bool opens_networks = false;           // PTL_UDP_OPEN
  std::vector<std::string> allowed;      // PTL_TRANSPORT
  bool chooses_transports = false;       // PTL_TRANSPORT is set
  uint64_t shm_memory_bytes = 0;         // PTL_SHM_MEMORY_KIB
  bool shm_cma = true;                   // PTL_SHM_CMA
  uint32_t shm_cma_threshold_bytes = 0;  // PTL_SHM_CMA_THRESHOLD
  UdpRails udp_rails;                    // PTL_RAILS
  uint32_t udp_frame_bytes = 0;          // PTL_UDP_FRAME_BYTES; 0: what routes take
  ReliableSettings reliable;  // PTL_PEER_TIMEOUT_MS and others, for transports over links
  DpdkChoice dpdk;            // PTL_DPDK_...
  VerbsChoice verbs;          // PTL_VERBS_...; not filled in if PTL_TRANSPORT leaves it out
};

// The nid of this node as configured (PTL_NID), else that of the
// RDMA port that would be used, and why it is that.
[[nodiscard]] NodeIdentity configured_node_identity();

// Returns settings by the configuration (config_load() has run) and the node; interface and pid as
// given.
[[nodiscard]] TransportSettings transport_settings(uint32_t interface_number, uint32_t pid);

[[nodiscard]] OpenedTransports open_transports(const TransportSettings& settings);
// Opens the transports with the settings of the configuration. An OpenTransports function.
[[nodiscard]] OpenedTransports open_configured_transports(uint32_t interface_number, uint32_t pid);

// Returns the interfaces in the order of their numbers; PTL_IFACE_DEFAULT is the first. For
// ptl_info.
[[nodiscard]] std::vector<uint32_t> interface_numbers();

struct TransportChoice {
  std::string name;
  bool usable;         // would be opened
  std::string reason;  // description of its use, or why it would not be opened
  bool is_unexpected;  // not usable, although it should be or was requested by name
};
// Returns the transports that the interface would use, determined without taking a pid. Empty: no
// such interface.
[[nodiscard]] std::vector<TransportChoice> explain_transports(const TransportSettings& settings);

}  // namespace lintel
#pragma GCC visibility pop

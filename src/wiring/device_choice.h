// Choice of the Ethernet port and of the RDMA port that this process uses, and of the modules for
// them. Set-up path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dpdk/dpdk_module.h"
#include "transport/message.h"
#include "verbs/verbs_module.h"

namespace lintel {

// The reason of processes that are not meant to use DPDK.
inline constexpr const char* no_dpdk_ports = "PTL_DPDK_PORTS names no port";

struct DpdkChoice {
  DpdkSettings settings;               // all but the id; no ports: none for this process
  std::string reason = no_dpdk_ports;  // why this port, or why none
};

// The list of PTL_DPDK_PORTS, dealt out by local rank. Each process takes one port, or several with
// plus signs between them.
[[nodiscard]] DpdkChoice choose_dpdk_port(const std::string& ports, uint32_t local_rank,
                                          const std::string& rank_origin);
// Returns the choice by the configuration.
[[nodiscard]] DpdkChoice configured_dpdk();

// Returns why the port cannot be used; empty: it can, as far as that is known without opening it.
[[nodiscard]] std::string why_not_dpdk(const DpdkChoice& choice);
// Describes for ptl_info how the port would be used.
[[nodiscard]] std::string describe_dpdk(const DpdkChoice& choice);

[[nodiscard]] OpenStatus open_dpdk_link(const DpdkChoice& choice, ProcessId id,
                                        std::unique_ptr<PacketLink>& link, std::string& reason);

// The reason on machines without such devices.
inline constexpr const char* no_verbs_devices = "there is no RDMA device on this node";

struct VerbsChoice {
  bool usable = false;                    // as far as is known without opening the port
  VerbsPort port;                         // the port, if usable
  std::string reason = no_verbs_devices;  // why not usable
  VerbsSettings settings;  // all but those of the process, of the reliability layer, and faults
};

// Returns the choice by the configuration and the node. `nid`: a requested address, or 0; the port
// that has it is preferred. Loads the module only where there are devices.
[[nodiscard]] VerbsChoice configured_verbs(uint32_t nid);

[[nodiscard]] OpenStatus open_verbs_transport(const VerbsChoice& choice, ProcessId id,
                                              const ReliableSettings& reliable,
                                              const Faults& faults,
                                              std::unique_ptr<Transport>& transport,
                                              std::string& reason);

}  // namespace lintel

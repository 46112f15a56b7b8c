// Choice of the Ethernet port that this process uses through DPDK, and of the module for it. Set-up
// path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dpdk/dpdk_module.h"
#include "transport/message.h"

namespace lintel {

// The reason of processes that are not meant to use DPDK.
inline constexpr const char* no_dpdk_ports = "PTL_DPDK_PORTS names no port";

struct DpdkChoice {
  DpdkSettings settings;               // all but the id; no port: none for this process
  std::string reason = no_dpdk_ports;  // why this port, or why none
};

// The list of PTL_DPDK_PORTS, dealt out by local rank.
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

}  // namespace lintel

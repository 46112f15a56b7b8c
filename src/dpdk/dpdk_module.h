// Interface of the module dpdk: only the module needs DPDK, not libportals. Set-up path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/open_status.h"
#include "transport/packet_link.h"

namespace lintel {

struct DpdkSettings {
  ProcessId id;                    // identifier of this process
  std::vector<std::string> ports;  // each a PCI address, or a device with its arguments
  std::string eal_arguments;       // PTL_DPDK_EAL
  uint32_t mtu = 0;                // payload of an Ethernet frame; 0: what the port is set up for
  uint32_t ring = 1024;            // frames that may wait in the port, each way
};

struct DpdkModule {
  // Describes in `text` how the port would be used; nothing is started. False: `text` says why it
  // cannot be used at all, as far as that is known without an attempt.
  bool (*examine)(const std::string& port, std::string& text);
  // Starts DPDK if it does not run yet, and opens the port. `reason` explains what is not `opened`.
  // Thread-safe.
  OpenStatus (*open)(const DpdkSettings& settings, std::unique_ptr<PacketLink>& link,
                     std::string& reason);
};

}  // namespace lintel

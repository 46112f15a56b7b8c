// Whether this process uses an RDMA device, and the module that does it. Set-up path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "transport/message.h"
#include "verbs/verbs_module.h"

namespace lintel {

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

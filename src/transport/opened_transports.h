// The transports of an interface, as they are handed to the core. Set-up path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/open_status.h"
#include "transport/transport.h"

namespace lintel {

// The transports of one interface.
struct OpenedTransports {
  OpenStatus status = OpenStatus::failed;
  bool no_such_interface = false;  // with failed
  bool is_misconfigured = false;   // with failed: PTL_TRANSPORT means nothing
  // In the order in which connect() is to be tried.
  std::vector<std::unique_ptr<Transport>> transports;
  ProcessId id{};      // of this process there; the pid is the one that was asked for, or chosen
  std::string reason;  // of a failure, for the log
  // What the interface would use as well if it could, in the order of connect().
  struct Unused {
    std::string transport;
    std::string reason;
    size_t place;        // it would be tried before the transport with this index
    bool is_unexpected;  // it should be usable, or was asked for by name
  };
  std::vector<Unused> unused;
};

// Opens them as the configuration says (src/wiring); `pid` may be PTL_PID_ANY. A function, since
// the core depends on no transport.
using OpenTransports = OpenedTransports (*)(uint32_t interface_number, uint32_t pid);

}  // namespace lintel

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
  bool no_such_interface = false;  // cause of OpenStatus::failed
  bool is_misconfigured = false;   // cause of OpenStatus::failed: PTL_TRANSPORT is not valid
  // Transports in the order in which connect() is tried.
  std::vector<std::unique_ptr<Transport>> transports;
  ProcessId id{};      // this process on the interface, with the requested or chosen pid
  std::string reason;  // reason of a failure, for the log
  // Transports that the interface would also use if it could, in the order of connect().
  struct Unused {
    std::string transport;
    std::string reason;
    size_t place;        // index of the transport before which it would be tried
    bool is_unexpected;  // the transport should be usable, or was requested by name
  };
  std::vector<Unused> unused;
};

// Opens them as the configuration says (src/wiring); `pid` may be PTL_PID_ANY. A function, since
// the core depends on no transport.
using OpenTransports = OpenedTransports (*)(uint32_t interface_number, uint32_t pid);

}  // namespace lintel

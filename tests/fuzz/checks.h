// Checks that are independent of the order of operations. Set-up path.
#pragma once

#include <string>
#include <vector>

#include "fuzz/evidence.h"
#include "fuzz/state.h"

namespace lintel::fuzz {

// PTL_EVENT_AUTO_UNLINK must follow all events of its entry, and PTL_EVENT_AUTO_FREE must follow
// that (spec 3.13.1, C.5). No event may follow the call that ends the entry (spec 3.7.3, 3.11.3).
void check_order_of_events(const PortalHistory& history, std::vector<std::string>& problems);

// PTL_EVENT_AUTO_FREE must follow all events of messages in the entry, from all processes (spec
// 3.11).
void check_releases(const PortalHistory& history, const Evidence& evidence, const State& last,
                    std::vector<std::string>& problems);

// Each byte of an entry must come from a message to it, or be unchanged. Gets must return bytes
// that were in the memory.
void check_memory(const PortalHistory& history, const State& last,
                  std::vector<std::string>& problems);

}  // namespace lintel::fuzz

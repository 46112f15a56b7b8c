// What must hold besides the order of operations. Set-up path.
#pragma once

#include <string>
#include <vector>

#include "fuzz/evidence.h"
#include "fuzz/state.h"

namespace lintel::fuzz {

// PTL_EVENT_AUTO_UNLINK after all events of its entry, PTL_EVENT_AUTO_FREE after that (spec 3.13.1,
// C.5); nothing after the call that ends it (spec 3.7.3, 3.11.3).
void check_order_of_events(const PortalHistory& history, std::vector<std::string>& problems);

// PTL_EVENT_AUTO_FREE after all events of messages in the entry, from all processes (spec 3.11).
void check_releases(const PortalHistory& history, const Evidence& evidence, const State& last,
                    std::vector<std::string>& problems);

// Each byte of each entry is that of a message to it, or what it was before; gets returned what is
// there.
void check_memory(const PortalHistory& history, const State& last,
                  std::vector<std::string>& problems);

}  // namespace lintel::fuzz

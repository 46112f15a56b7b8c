// The reliable transport over a link, from settings alone. Set-up path.
#pragma once

#include <memory>
#include <string>

#include "reliable/faulty_link.h"
#include "reliable/reliable_transport.h"

// For modules and programs of this version, see cmake/portals.map.in.
#pragma GCC visibility push(default)
namespace lintel {

// With `faults` around the link. nullptr: `reason` says why not.
[[nodiscard]] std::unique_ptr<Transport> reliable_over_link(std::unique_ptr<PacketLink> link,
                                                            const ReliableSettings& settings,
                                                            const Faults& faults,
                                                            std::string& reason);

}  // namespace lintel
#pragma GCC visibility pop

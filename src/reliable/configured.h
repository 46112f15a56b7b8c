// The reliable transport over a link, as the configuration wants it. Set-up path.
#pragma once

#include <memory>
#include <string>

#include "reliable/faulty_link.h"
#include "reliable/reliable_transport.h"

namespace lintel {

struct TransportSettings;

[[nodiscard]] ReliableSettings configured_reliability(const TransportSettings& settings);
[[nodiscard]] Faults configured_faults();  // PTL_FAULTS

// With the faults of PTL_FAULTS around the link. `polls_always`: the interface polls nothing cheaper
// than this link. nullptr: `reason` says why not.
[[nodiscard]] std::unique_ptr<ReliableTransport> open_configured_transport(
    std::unique_ptr<PacketLink> link, const TransportSettings& settings, bool polls_always,
    std::string& reason);

}  // namespace lintel

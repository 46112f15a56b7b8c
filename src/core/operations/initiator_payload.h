// How the payload of a request is sent: with its header, or described for the target to fetch.
// Message path.
#pragma once

#include "core/operations/device_exports.h"
#include "core/operations/operation.h"
#include "core/operations/peer.h"

namespace lintel {

// Sends header and payload. `copy`: the payload if it is not to be read from the descriptor any
// more. `operation` records the memory that is exposed to the target; null only for requests that
// expose none.
[[nodiscard]] SendStatus send_payload(ScratchPool& scratch, DeviceExports& exports, Peer& peer,
                                      const Request& request, Operation* operation,
                                      const std::byte* copy = nullptr) noexcept
    LINTEL_REQUIRES(peer.send_lock);

}  // namespace lintel

// Choice of how the payload of a request travels: with its header, or fetched by the target.
// Message path.
#pragma once

#include "core/objects/limits.h"
#include "core/operations/initiator.h"
#include "core/operations/peer.h"

namespace lintel {

// A put too long for one message, or long enough that the target had better copy it from the
// initiator's memory itself. A volatile buffer must be read before the call returns (spec 3.10.1).
[[nodiscard]] inline bool travels_directly(const Capabilities& capabilities,
                                           const Request& request) noexcept {
  if (request.header.kind != MessageKind::put) return false;
  const uint64_t length = request.header.length();
  if (length > capabilities.max_eager_bytes) return true;
  if (!capabilities.remote_access || length <= capabilities.remote_threshold_bytes) return false;
  return (request.put.descriptor->options & PTL_MD_VOLATILE) == 0 ||
         length > largest_volatile_bytes;
}

// A get whose data the target had better write into the initiator's memory itself.
[[nodiscard]] inline bool needs_remote_memory(const Capabilities& capabilities,
                                              const Request& request) noexcept {
  if (request.header.kind != MessageKind::get) return false;
  const uint64_t length = request.header.length();
  return length > capabilities.max_eager_bytes ||
         (capabilities.remote_access && length > capabilities.remote_threshold_bytes);
}

// Sends header and payload. `copy`: the payload if it is not to be read from
// the descriptor any more. `operation` records the memory that is exposed to the target; null only
// for requests that expose none.
[[nodiscard]] SendStatus send_payload(PhysicalInterface& physical, Peer& peer,
                                      const Request& request, Operation* operation,
                                      const std::byte* copy = nullptr) noexcept
    LINTEL_REQUIRES(peer.send_lock);

}  // namespace lintel

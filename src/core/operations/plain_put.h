// The common case at the target: a put that came with its payload and fits an entry of the priority
// list at the requested offset. handle_request() does the same for every message. Message path, the
// poll token held.
#pragma once

#include "core/operations/target_request.h"

namespace lintel {

// Matches, delivers, reports and acknowledges (spec 2.5). False: nothing was done, or a part of the
// payload was written that handle_request() writes again; it finds out what is special.
[[nodiscard]] bool deliver_plain_put(PhysicalInterface& physical, Peer& peer,
                                     const InboundMessage& message) noexcept;

}  // namespace lintel

// FI_PEEK, FI_CLAIM and FI_DISCARD: looks for unexpected messages, takes them out, drops them.
// Message path.
#pragma once

#include <portals4.h>

#include "endpoint/operation.h"
#include "transfer/receive.h"

namespace lintel::ofi {

ssize_t peek(Endpoint& endpoint, const ReceiveRequest& request);
// Receives or drops a message that was claimed with the same context.
ssize_t receive_claimed(Endpoint& endpoint, const ReceiveRequest& request);

// The event of a search.
void search_ended(Operation& operation, const ptl_event_t& event);

}  // namespace lintel::ofi

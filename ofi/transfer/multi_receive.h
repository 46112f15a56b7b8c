// Buffers for several messages (FI_MULTI_RECV): an entry that keeps its own offset. The end of a
// buffer is an entry of its own, with no other flag than FI_MULTI_RECV. Message path.
#pragma once

#include <portals4.h>

#include "endpoint/operation.h"
#include "transfer/receive.h"

namespace lintel::ofi {

ssize_t post_multi_receive(Endpoint& endpoint, const ReceiveRequest& request);
// Ends a buffer with an error; what has arrived is reported.
void end_multi_receive(Operation& operation, int error);

// Events of a buffer: data is in place; a header was there already; the buffer is used up; the data
// of a long message has been got.
void part_arrived(Operation& operation, const ptl_event_t& event);
void part_found_header(Operation& operation, const ptl_event_t& event);
void buffer_used_up(Operation& operation);
void part_fetched(Operation& part, const ptl_event_t& event);

}  // namespace lintel::ofi

// Sends what waits in the send queues. Message path.
#pragma once

#include "transport/polling.h"

namespace lintel {

class PhysicalInterface;

// Sends from all queues as much as the transports have room for.
void flush_queues(PhysicalInterface& physical) noexcept LINTEL_REQUIRES(polling);

}  // namespace lintel

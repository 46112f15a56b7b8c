// Sends what waits in the send queues. Message path.
#pragma once

#include "transport/polling.h"

namespace lintel {

class PhysicalInterface;

// As much as the transports take of all queues.
void flush_queues(PhysicalInterface& physical) noexcept LINTEL_REQUIRES(polling);

}  // namespace lintel

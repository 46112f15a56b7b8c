// Sends what waits in the send queues. Message path, the poll token held.
#pragma once

namespace lintel {

class PhysicalInterface;

// As much as the transports take of all queues.
void flush_queues(PhysicalInterface& physical) noexcept;

}  // namespace lintel

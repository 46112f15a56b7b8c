// Memory of this process that is exposed to peers: the descriptions that were sent with the
// operations that have not ended. Message path of large payloads.
#pragma once

#include "core/operations/operation_table.h"
#include "transport/polling.h"

namespace lintel {

// See MessageSink::may_access().
[[nodiscard]] bool may_access(const OperationTable& operations, const Peer* peer,
                              const RemoteMemory& memory, bool write) noexcept
    LINTEL_REQUIRES(polling);

}  // namespace lintel

// Which memory of this process is exposed to peers: the descriptions that went out with the
// operations that still go on. Message path of large payloads.
#pragma once

#include "core/operations/operation_table.h"
#include "transport/polling.h"

namespace lintel {

// See MessageSink::may_access().
[[nodiscard]] bool may_access(const OperationTable& operations, const Peer* peer,
                              const RemoteMemory& memory, bool write) noexcept
    LINTEL_REQUIRES(polling);

}  // namespace lintel

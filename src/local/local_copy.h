// "Remote" access to the memory of the own process: guarded copies between pieces on both sides.
// Message path.
#pragma once

#include "transport/transport.h"

namespace lintel {

// Copies from `remote` to `local` if `reading`, otherwise the other way, until one side ends or a
// byte is not there: the result says how many bytes were moved, and which side had the fault.
[[nodiscard]] RemoteResult copy_within_process(const Piece* local, unsigned local_count,
                                               const RemoteMemory* remote, unsigned remote_count,
                                               bool reading) noexcept;

}  // namespace lintel

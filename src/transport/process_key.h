// Processes in one number: for tables, and an order that is the same for all. Connection path.
#pragma once

#include "transport/message.h"

namespace lintel {

[[nodiscard]] constexpr uint64_t key_of(ProcessId process) noexcept {
  return uint64_t{process.nid} << 32 | process.pid;
}

}  // namespace lintel

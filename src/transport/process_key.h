// Processes in one number: for tables, and an order that is the same for all. Connection path.
#pragma once

#include <bit>

#include "transport/message.h"

namespace lintel {

[[nodiscard]] constexpr uint64_t key_of(ProcessId process) noexcept {
  return std::rotl(std::bit_cast<uint64_t>(process), 32);
}

}  // namespace lintel

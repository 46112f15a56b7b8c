// The memory of an operation that its target may access: ending that access. Message path.
#pragma once

#include "core/operations/operation.h"

namespace lintel {

// An operation that has exposed memory.
[[gnu::noinline]] void withdraw_exposed_memory(Operation& operation, bool answered) noexcept;

// Ends the target's access to the operation's memory. Called before the end of the operation, or of
// its sending, is reported. `answered`: the target has said that it is done.
inline void withdraw_memory(Operation& operation, bool answered) noexcept {
  if (operation.exposure.load(std::memory_order_relaxed) != Exposure::none) [[unlikely]]
    withdraw_exposed_memory(operation, answered);
}

}  // namespace lintel

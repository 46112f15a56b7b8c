// An object that is in use because of a message stays so until a thread polls. Calls that would
// refuse for that reason first poll in passing, so that a program may repeat them in a loop.
#pragma once

#include "core/operations/physical_interface.h"

namespace lintel::api {

// The code that `attempt` returns; if that is `refusal`, the code of another attempt after a poll.
template <typename Attempt>
[[nodiscard]] int poll_before_refusal(PhysicalInterface& physical, int refusal,
                                      Attempt&& attempt) noexcept {
  const int code = attempt();
  return code == refusal && physical.passing_polls().poll() ? attempt() : code;
}

}  // namespace lintel::api

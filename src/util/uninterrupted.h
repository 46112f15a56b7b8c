// A system call again as long as a signal interrupts it, but not without end. Set-up and connection
// path.
#pragma once

#include <cerrno>

namespace lintel {

// Then the caller sees the failure: a kernel, or a filter of system calls, that answers EINTR each
// time must not stop the program.
inline constexpr unsigned most_interruptions = 100;

template <typename Call>
[[nodiscard]] auto uninterrupted(const Call& call) noexcept {
  auto result = call();
  for (unsigned i = 0; result < 0 && errno == EINTR && i < most_interruptions; ++i) result = call();
  return result;
}

}  // namespace lintel

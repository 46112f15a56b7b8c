// A clock that is read once per message or per poll. quick_clock() is on the set-up path, what it
// returns on the message path.
#pragma once

#include <cstdint>

namespace lintel {

using Clock = uint64_t (*)() noexcept;

// The cheapest reliable clock: monotonic nanoseconds, from any thread. On x86-64 the time-stamp
// counter, if its rate is constant and the kernel uses it. Its rate is measured at the first call,
// which takes a fraction of a millisecond; it drifts from now_ns() by less than one in a thousand.
// Otherwise now_ns() itself. Only readings of the same clock may be compared.
[[nodiscard]] Clock quick_clock() noexcept;

}  // namespace lintel

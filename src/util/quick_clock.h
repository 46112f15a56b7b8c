// A clock for those who read it once per message or per poll. Set-up path for quick_clock(); what it
// returns is for the message path.
#pragma once

#include <cstdint>

namespace lintel {

using Clock = uint64_t (*)() noexcept;

// The cheapest clock that can be trusted here: monotonic nanoseconds, from any thread. On x86-64 the
// time-stamp counter, if it never changes its pace and the kernel keeps its own time by it; its pace is measured
// at the first call, which takes a fraction of a millisecond, and it then drifts from now_ns() by less than
// one in a thousand. Otherwise now_ns() itself. Readings of one clock may be compared with one another
// only.
[[nodiscard]] Clock quick_clock() noexcept;

}  // namespace lintel

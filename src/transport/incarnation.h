// The number that names one process for as long as it has its interface open. All transports of the
// interface send it to their peers. So a peer that is reached by two of them sees that both lead to
// one process, and that a process with an address it knows is another one. Set-up path.
#pragma once

#include <cstdint>

#include "util/random.h"

namespace lintel {

// Bits of an incarnation that are always zero, as shared memory keeps a state there.
inline constexpr uint64_t incarnation_spare_bits = 15;

// Returns 0, which names no process, if the kernel has no random numbers.
[[nodiscard]] inline uint64_t new_incarnation() noexcept {
  uint64_t number = 0;
  while ((number & ~incarnation_spare_bits) == 0)
    if (!fill_random(&number, sizeof number)) return 0;
  return number & ~incarnation_spare_bits;
}

}  // namespace lintel

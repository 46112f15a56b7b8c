// Memory for a moment that is too much for the stack of a caller: threads of run-time systems often
// have 16 KiB. A thread has one block at a time (Loan). Message path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "util/loan.h"

namespace lintel {

struct ScratchBlock {
  std::atomic<uint32_t> next_free{0};
  std::byte bytes[16384];
};

using ScratchPool = Arena<ScratchBlock>;

inline constexpr uint32_t most_scratch_blocks = 256;  // threads that send or deliver at once

}  // namespace lintel

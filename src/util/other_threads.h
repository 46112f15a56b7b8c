// The other threads of this process, as the kernel sees them. Set-up path.
#pragma once

#include <algorithm>
#include <cstdint>

#include "util/assert.h"

namespace lintel {

// The time that a thread has run at least, by samples of its processor time. A virtual processor
// that the host has stopped for milliseconds executes nothing, and the kernel may count that time
// as the thread's. So a sample adds little, however long the time since the one before.
class ProvenRunTime {
 public:
  static constexpr uint64_t most_of_sample_ns = 250'000;

  explicit ProvenRunTime(uint64_t processor_time_ns) noexcept : last_ns_(processor_time_ns) {}
  // Returns the time that is proven now.
  uint64_t add_sample(uint64_t processor_time_ns) noexcept {
    LINTEL_ASSERT(processor_time_ns >= last_ns_);
    proven_ns_ += std::min(processor_time_ns - last_ns_, most_of_sample_ns);
    last_ns_ = processor_time_ns;
    return proven_ns_;
  }

 private:
  uint64_t last_ns_;
  uint64_t proven_ns_ = 0;
};

class OtherThreads {
 public:
  // Returns when each other thread that exists now has been asleep, has ended, or has run for this
  // time of a processor (ProvenRunTime), since the call began. So it has left any piece of code
  // that does not sleep and takes less time. After five seconds it returns anyway.
  static void let_run(uint64_t processor_ns) noexcept;
};

}  // namespace lintel

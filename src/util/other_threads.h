// The other threads of this process, as the kernel sees them. Set-up path.
#pragma once

#include <cstdint>

namespace lintel {

class OtherThreads {
 public:
  // Returns when each other thread that exists now has been asleep, has ended, or has run for this
  // time of a processor, since the call began. So it has left any piece of code that does not sleep
  // and takes less time. After a second it returns anyway.
  static void let_run(uint64_t processor_ns) noexcept;
};

}  // namespace lintel

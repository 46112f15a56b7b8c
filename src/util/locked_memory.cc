// Advice about the limit of locked memory. Set-up path.
#include "util/locked_memory.h"

#include <sys/resource.h>

namespace lintel {

std::string locked_memory_advice() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "the limit of locked memory (RLIMIT_MEMLOCK) is not reached: the device or the kernel has "
           "no memory left";
  return "the limit of locked memory (RLIMIT_MEMLOCK) is " + std::to_string(limit.rlim_cur / 1024) +
         " KiB for this process: raise it with `ulimit -l unlimited`, memlock in "
         "/etc/security/limits.d, or LimitMEMLOCK=infinity in the unit of a service such as slurmd";
}

}  // namespace lintel

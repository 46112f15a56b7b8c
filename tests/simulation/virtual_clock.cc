// The clocks of the library in a simulation: util/clock.h, and the replacement of clock_gettime()
// (linker option --wrap).
#include <time.h>

#include "simulation/virtual_time.h"
#include "util/clock.h"

namespace lintel {

Clock quick_clock() noexcept { return simulation::virtual_clock; }

}  // namespace lintel

extern "C" int __wrap_clock_gettime(clockid_t, timespec* time) {
  using namespace lintel::simulation;
  static uint64_t ahead_ns = 0;
  ahead_ns = ClosingTime::closes ? ahead_ns + 100 * millisecond : 0;
  const uint64_t now_ns = virtual_now_ns + ahead_ns;
  time->tv_sec = static_cast<time_t>(now_ns / second);
  time->tv_nsec = static_cast<long>(now_ns % second);
  return 0;
}

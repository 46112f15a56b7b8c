// The time-stamp counter as a clock. Set-up path; ticks_as_ns() is for the message path.
#include "util/clock.h"

#include "util/clock_rate.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <fcntl.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cstring>

#include "util/new_descriptor.h"
#endif

namespace lintel {

#if defined(__x86_64__)

namespace {

uint64_t start_ticks;
uint64_t start_ns;
uint64_t ns_per_tick;  // fixed-point number with clock_fraction_bits behind the point

uint64_t ticks_as_ns() noexcept {
  __extension__ using Wide = unsigned __int128;
  const uint64_t ticks = __rdtsc() - start_ticks;
  return start_ns + static_cast<uint64_t>(Wide{ticks} * ns_per_tick >> clock_fraction_bits);
}

bool has_steady_counter() noexcept {
  constexpr unsigned power_leaf = 0x80000007;
  constexpr unsigned invariant = 1u << 8;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(power_leaf, &a, &b, &c, &d) != 0 && (d & invariant) != 0;
}

// The kernel compares the counters of all processors, and uses another clock when they differ.
bool kernel_trusts_counter() noexcept {
  const Descriptor file =
      open_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY);
  char name[8] = {};
  return file.is_open() && read(file.get(), name, sizeof name - 1) > 0 &&
         std::strcmp(name, "tsc\n") == 0;
}

// Reads both clocks at one moment: of several attempts, the one with the least time between the
// readings counts.
ClockReading read_both() noexcept {
  ClockReading best{};
  uint64_t least = UINT64_MAX;
  for (int attempt = 0; attempt < 8; ++attempt) {
    const uint64_t before = __rdtsc();
    const uint64_t ns = now_ns();
    const uint64_t after = __rdtsc();
    if (after - before >= least) continue;
    least = after - before;
    best = {before + (after - before) / 2, ns};
  }
  return best;
}

// Reading of both clocks when the library is loaded: often enough time has passed when a clock is
// needed.
const ClockReading loaded = read_both();

Clock choose() noexcept {
  if (!has_steady_counter() || !kernel_trusts_counter()) return now_ns;
  ClockReading end = read_both();
  const ClockReading start = rate_start(loaded, end);
  while (end.ns - start.ns < shortest_rate_ns) end = read_both();
  ns_per_tick = clock_rate(start, end);
  if (ns_per_tick == 0) return now_ns;
  start_ticks = start.ticks;
  start_ns = start.ns;
  return ticks_as_ns;
}

}  // namespace

#else

namespace {
Clock choose() noexcept { return now_ns; }
}  // namespace

#endif

Clock quick_clock() noexcept {
  static const Clock clock = choose();
  return clock;
}

}  // namespace lintel

// The search for a free processor. Reached after a millisecond on a crowded one.
#include "core/progress/relocation.h"

#include <sched.h>

#include "core/progress/processor_load.h"
#include "util/clock.h"

namespace lintel {
namespace {

bool run_on(const cpu_set_t& set) noexcept { return sched_setaffinity(0, sizeof set, &set) == 0; }

bool run_on(int cpu) noexcept {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  return run_on(one);
}

// The n-th processor of `allowed` after `here`, other than `here`; there are two at least.
int other_processor(const cpu_set_t& allowed, int here, unsigned n) noexcept {
  int cpu = here;
  for (n = n % (static_cast<unsigned>(CPU_COUNT(&allowed)) - 1) + 1; n != 0; --n) {
    do cpu = (cpu + 1) % CPU_SETSIZE;
    while (!CPU_ISSET(cpu, &allowed));
  }
  return cpu;
}

uint64_t time_of_yield_ns() noexcept {
  const uint64_t before = now_ns();
  sched_yield();
  return now_ns() - before;
}

// Of the calling thread's new processor: two yields return at once. Some are interrupted; a thread
// that computes takes a time slice.
bool is_alone() noexcept {
  constexpr int most_yields = 4;
  int quick = 0;
  for (int i = 0; i < most_yields && quick < 2; ++i) {
    const uint64_t took_ns = time_of_yield_ns();
    if (took_ns > ProcessorLoad::long_turn_ns) return false;
    if (took_ns <= ProcessorLoad::slow_yield_ns) ++quick;
  }
  return quick == 2;
}

}  // namespace

SearchResult move_to_free_processor() noexcept {
  static std::atomic<unsigned> searches{0};
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int here = sched_getcpu();
  if (here < 0 || here >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) != 0 ||
      !CPU_ISSET(here, &allowed) || CPU_COUNT(&allowed) < 2)
    return SearchResult::no_other;
  // The other thread may have moved. One yield: it may sleep after the first.
  if (time_of_yield_ns() <= ProcessorLoad::slow_yield_ns) return SearchResult::moved;
  const unsigned n = searches.fetch_add(1, std::memory_order_relaxed);
  const uint64_t start_ns = now_ns();
  const bool moved = run_on(other_processor(allowed, here, n)) &&
                     now_ns() - start_ns < ProcessorLoad::long_turn_ns && is_alone();
  if (!moved) run_on(here);
  run_on(allowed);
  return moved ? SearchResult::moved : SearchResult::busy;
}

}  // namespace lintel

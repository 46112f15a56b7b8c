#include "core/progress/passing_polls.h"

#include <sched.h>

#include "util/clock.h"

namespace lintel {

void PassingPolls::rest(uint32_t idle_looks) noexcept {
  const uint64_t before = now_ns();
  if (!policy_.wants_yield(idle_looks, before)) return;
  sched_yield();
  policy_.note_yield(before, now_ns());
}

}  // namespace lintel

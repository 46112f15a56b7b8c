// The membarrier system call behind asymmetric_fence.h. Set-up path and threads about to sleep.
#include "util/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/fence_cost.h"

namespace lintel {

namespace fence_detail {
std::atomic<bool> registered{false};
std::atomic<bool> dear{false};
}  // namespace fence_detail

namespace {
std::atomic<bool> cost_is_watched{true};
FenceCost cost;

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }
}  // namespace

bool register_asymmetric_fence() noexcept {
#if defined(__SANITIZE_THREAD__)
  // The thread sanitizer knows no membarrier; give it fences that it can see.
  const bool available = false;
#else
  const bool available = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
#endif
  fence_detail::registered.store(available, std::memory_order_relaxed);
  return available;
}

void heavy_fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!asymmetric_fence_available()) return;
  const uint64_t before = now_ns();
  membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  if (cost.note(now_ns() - before) && cost_is_watched.load(std::memory_order_relaxed))
    fence_detail::dear.store(true, std::memory_order_relaxed);
}

void watch_fence_cost(bool watched) noexcept {
  cost_is_watched.store(watched, std::memory_order_relaxed);
}

// A thread that loads `full` after that membarrier sees 1. What threads stored that had loaded it
// before is visible when the membarrier returns. So no further membarrier is needed.
void FencePair::heavy() noexcept {
  if (settled.load(std::memory_order_relaxed) != 0) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return;
  }
  const bool dear = asymmetric_fence_is_dear();
  if (dear) full.store(1, std::memory_order_relaxed);
  heavy_fence();
  if (dear) settled.store(1, std::memory_order_relaxed);
}

}  // namespace lintel

// The membarrier system call behind asymmetric_fence.h. Set-up path and threads about to sleep.
#include "util/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/clock.h"

namespace lintel {

namespace fence_detail {
std::atomic<bool> registered{false};
std::atomic<bool> dear{false};
}  // namespace fence_detail

namespace {
// A full fence costs about 10 ns, and who sends a few hundred messages before the other side sleeps again pays less
// for these than for one membarrier of this price.
constexpr uint64_t dear_ns = 10'000;
constexpr uint32_t fences_until_judged = 16;
constexpr uint64_t cost_share = 8;  // of what was seen last in the average

std::atomic<uint64_t> cost_ns{0};  // an average
std::atomic<uint32_t> fences{0};

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }

// Threads that do this at the same time may lose one of their findings.
void note_cost(uint64_t took_ns) noexcept {
  const uint64_t cost = cost_ns.load(std::memory_order_relaxed);
  const uint64_t now = cost + took_ns / cost_share - cost / cost_share;
  cost_ns.store(now, std::memory_order_relaxed);
  if (fences.fetch_add(1, std::memory_order_relaxed) >= fences_until_judged && now > dear_ns)
    fence_detail::dear.store(true, std::memory_order_relaxed);
}
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
  note_cost(now_ns() - before);
}

// Who loads `full` after that membarrier sees 1; the data of who had loaded it before can be seen when the
// membarrier returns. So from then on nobody needs another.
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

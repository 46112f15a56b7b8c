// The membarrier system call behind asymmetric_fence.h. Set-up path and threads about to sleep.
#include "util/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lintel {

std::atomic<bool> fence_detail::registered{false};

namespace {
bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }
}  // namespace

bool register_asymmetric_fence() noexcept {
#if defined(__SANITIZE_THREAD__)
  // The thread sanitizer does not model membarrier: real fences.
  const bool available = false;
#else
  const bool available = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
#endif
  fence_detail::registered.store(available, std::memory_order_relaxed);
  return available;
}

void heavy_fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (asymmetric_fence_available()) membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

}  // namespace lintel

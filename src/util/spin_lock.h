// A lock of one byte for critical sections of a few dozen nanoseconds.
// Message path: taking it free costs one locked instruction and never a system call; only a
// holder that lost its processor makes the others yield theirs.
#pragma once

#include <sched.h>

#include <atomic>

#include "util/assert.h"
#include "util/thread_annotations.h"

namespace lintel {

class LINTEL_CAPABILITY("lock") SpinLock {
 public:
  void lock() noexcept LINTEL_ACQUIRE() {
    if (!try_lock()) [[unlikely]]
      lock_when_free();
  }
  [[nodiscard]] bool try_lock() noexcept LINTEL_TRY_ACQUIRE(true) {
    return !held_.exchange(true, std::memory_order_acquire);
  }
  void unlock() noexcept LINTEL_RELEASE() { held_.store(false, std::memory_order_release); }

  // For callers that hold the lock where the compiler cannot see that.
  void assert_held() const noexcept LINTEL_ASSERT_CAPABILITY(this) {
    LINTEL_ASSERT(held_.load(std::memory_order_relaxed));
  }

 private:
  // A function of its own: inline it would take registers from the common case.
  [[gnu::noinline]] void lock_when_free() noexcept {
    // If there are more threads than processors, the holder may wait for the processor of this one.
    do {
      for (unsigned spins = 0; held_.load(std::memory_order_relaxed); ++spins) {
        if (spins >= 200) {
          sched_yield();
          spins = 0;
        }
      }
    } while (held_.exchange(true, std::memory_order_acquire));
  }

  std::atomic<bool> held_{false};
};

}  // namespace lintel

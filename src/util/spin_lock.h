// A lock of one byte for critical sections of a few dozen nanoseconds.
// Message path: taking it free costs one locked instruction and never a system call; only a
// holder that lost its processor makes the others yield theirs.
#pragma once

#include <sched.h>

#include <atomic>

namespace lintel {

class SpinLock {
 public:
  void lock() noexcept {
    while (!try_lock()) wait_until_free();
  }
  [[nodiscard]] bool try_lock() noexcept {
    return !held_.exchange(true, std::memory_order_acquire);
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  // A function of its own: inline it would take registers from the common case.
  [[gnu::noinline]] void wait_until_free() const noexcept {
    // With more threads than processors the holder may be waiting for ours.
    for (unsigned spins = 0; held_.load(std::memory_order_relaxed); ++spins) {
      if (spins >= 200) {
        sched_yield();
        spins = 0;
      }
    }
  }

  std::atomic<bool> held_{false};
};

}  // namespace lintel

// Wakes application threads that sleep until an event queue or a counter of one physical interface
// changes. Message path for notify(): a load and a branch unless a thread sleeps.
#pragma once

#include <atomic>
#include <cstdint>

#include "util/asymmetric_fence.h"
#include "util/cache_line.h"
#include "util/doorbell.h"
#include "util/futex.h"

namespace lintel {

class WaitGate {
 public:
  // Set-up path. The doorbell on which a waiting thread sleeps when it is the poller as well.
  void set_doorbell(Doorbell* doorbell) noexcept {
    doorbell_ = doorbell;
    if (asymmetric_fence_available()) sleepers_.store(0, std::memory_order_relaxed);
  }

  // After an event or a count became visible.
  [[gnu::always_inline]] void notify() noexcept {
    if (someone_sleeps()) [[unlikely]]
      notify_sleepers();
  }
  // The same: whether notify() is to be called.
  [[nodiscard, gnu::always_inline]] bool someone_sleeps() const noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return sleepers_.load(std::memory_order_relaxed) != 0;
  }
  // Async-signal-safe.
  [[gnu::noinline]] void wake_all() noexcept {
    word_.fetch_add(1, std::memory_order_release);
    futex_wake(word_);
    if (doorbell_ != nullptr) doorbell_->ring();
  }

  // A thread that is about to sleep: prepare(), look for what it waits for, then sleep() or not,
  // then finish().
  [[nodiscard]] uint32_t prepare() noexcept {
    announce();
    const uint32_t seen = word_.load(std::memory_order_relaxed);
    heavy_fence();
    return seen;
  }
  // Announces a thread that sleeps on the doorbell. Doorbell::announce_sleep(), which follows,
  // contains the fence.
  void announce() noexcept { sleepers_.fetch_add(1, std::memory_order_relaxed); }
  void sleep(uint32_t seen, int64_t timeout_ns) noexcept { futex_wait(word_, seen, timeout_ns); }
  void finish() noexcept { sleepers_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  [[gnu::noinline]] void notify_sleepers() noexcept {
    if ((sleepers_.load(std::memory_order_relaxed) & without_membarrier) != 0) {
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (sleepers_.load(std::memory_order_relaxed) == without_membarrier) return;
    }
    wake_all();
  }

  // Part of sleepers_ without membarrier: each notify() has a full fence before it looks for
  // sleepers.
  static constexpr uint32_t without_membarrier = 1u << 31;
  alignas(cache_line_bytes) std::atomic<uint32_t> sleepers_{without_membarrier};
  std::atomic<uint32_t> word_{0};
  Doorbell* doorbell_ = nullptr;
};

}  // namespace lintel

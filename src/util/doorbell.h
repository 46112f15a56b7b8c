// The word on which the poller of a process sleeps and which its peers wake.
// Message path for ring_if_sleeping(): one load unless the receiver sleeps. One doorbell exists per
// physical interface, in memory that the peers can reach.
#pragma once

#include <atomic>
#include <cstdint>

#include "util/asymmetric_fence.h"
#include "util/futex.h"

namespace lintel {

struct alignas(64) Doorbell {
  // 1 while a thread sleeps here or is about to. Only ring() clears it: a thread that wakes cannot
  // know whether another one has gone to sleep meanwhile, and a stale 1 costs one needless ring.
  std::atomic<uint32_t> sleeping{0};
  std::atomic<uint32_t> rings{0};        // the futex word
  std::atomic<uint32_t> full_fences{0};  // 1: the owner has no membarrier, see light_fence()

  // Sender, after publishing a message. Never blocks. `full_fence`: wants_full_fence(), which does
  // not change.
  void ring_if_sleeping(bool full_fence) noexcept {
    if (full_fence) [[unlikely]]
      std::atomic_thread_fence(std::memory_order_seq_cst);
    else
      std::atomic_signal_fence(std::memory_order_seq_cst);
    if (sleeping.load(std::memory_order_relaxed) != 0) [[unlikely]]
      ring();
  }
  void ring_if_sleeping() noexcept { ring_if_sleeping(wants_full_fence()); }
  // Whether a sender needs a full fence: one of the two has no membarrier.
  [[nodiscard]] bool wants_full_fence() const noexcept {
    return full_fences.load(std::memory_order_relaxed) != 0 || !asymmetric_fence_available();
  }
  // Between a store and the look whether the owner sleeps.
  void order_before_look() const noexcept {
    light_fence(full_fences.load(std::memory_order_relaxed) == 0);
  }
  // Wakes the poller unconditionally. Async-signal-safe.
  void ring() noexcept {
    sleeping.store(0, std::memory_order_relaxed);
    rings.fetch_add(1, std::memory_order_release);
    futex_wake(rings);
  }

  // Poller: announces that it will sleep and returns the value to sleep on. Look for work once more
  // before sleeping.
  [[nodiscard]] uint32_t announce_sleep() noexcept {
    const uint32_t seen = rings.load(std::memory_order_acquire);
    sleeping.store(1, std::memory_order_relaxed);
    heavy_fence();
    return seen;
  }
  void sleep(uint32_t seen, int64_t timeout_ns) noexcept { futex_wait(rings, seen, timeout_ns); }

  // Sleeps until the next ring(), also while the poller is awake. Called by a thread that does not
  // poll. False: the time is over.
  [[nodiscard]] bool sleep_beside_poller(uint32_t seen, int64_t timeout_ns) noexcept {
    futex_wait(rings, seen, timeout_ns);
    return rings.load(std::memory_order_acquire) != seen;
  }
};
static_assert(sizeof(Doorbell) == 64);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace lintel

// A store-load fence whose whole cost is on the side that runs rarely.
//
// The frequent side stores data and then loads a flag "a thread sleeps". The rare side stores that
// flag and then looks for data before it sleeps. One of them must see the other's store.
// light_fence() orders the frequent side at no cost. heavy_fence() makes the kernel run a barrier
// on every processor that executes a registered process (membarrier, global expedited), so it also
// pairs with light_fence() in other processes.
#pragma once

#include <atomic>
#include <cstdint>

// Exported for modules and programs of this version, see cmake/portals.map.in.
#pragma GCC visibility push(default)
namespace lintel {

namespace fence_detail {
extern std::atomic<bool> registered;
}

// Registers this process with the kernel. Call once at set-up, and again in a forked child. False:
// the kernel offers no expedited membarrier. Then light_fence() is a full fence here, and peers
// must use one, too (asymmetric_fence_available()).
bool register_asymmetric_fence() noexcept;

// False: senders to this process must use a full fence in place of light_fence().
inline bool asymmetric_fence_available() noexcept {
  return fence_detail::registered.load(std::memory_order_relaxed);
}

// Frequent side, message path. `peer_supports`: what the peer says about itself.
inline void light_fence(bool peer_supports = true) noexcept {
  if (peer_supports && asymmetric_fence_available()) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

// Rare side: a system call of a microsecond or more.
void heavy_fence() noexcept;

}  // namespace lintel
#pragma GCC visibility pop

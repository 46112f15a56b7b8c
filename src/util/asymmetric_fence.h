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

// For modules and programs of this version, see cmake/portals.map.in.
#pragma GCC visibility push(default)
namespace lintel {

namespace fence_detail {
extern std::atomic<bool> registered;
extern std::atomic<bool> dear;
}  // namespace fence_detail

// Registers this process with the kernel. Call once at set-up, and again in a forked child. False:
// the kernel offers no expedited membarrier. Then light_fence() is a full fence here, and peers
// must be told to use one, too (asymmetric_fence_available()).
bool register_asymmetric_fence() noexcept;

// False: senders to this process must use a full fence in place of light_fence().
inline bool asymmetric_fence_available() noexcept {
  return fence_detail::registered.load(std::memory_order_relaxed);
}

// heavy_fence() costs more than full fences at the frequent side would. It interrupts every
// processor that runs a registered process, which takes tens of microseconds where processors are
// virtual. Stays true.
inline bool asymmetric_fence_is_dear() noexcept {
  return fence_detail::dear.load(std::memory_order_relaxed);
}

// Frequent side, message path. `peer_supports`: what the peer says about itself.
inline void light_fence(bool peer_supports = true) noexcept {
  if (peer_supports && asymmetric_fence_available()) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

// Rare side: a system call of a microsecond or more, whose cost is watched.
void heavy_fence() noexcept;
// Whether the cost of heavy_fence() is measured; at first it is. Set-up path, for measurements.
void watch_fence_cost(bool watched) noexcept;

// The two sides of one flag, which change to full fences when heavy_fence() is too slow. Lies
// beside the flag, also in memory that processes share.
struct FencePair {
  std::atomic<uint32_t> full{0};     // frequent side: 1 for a full fence
  std::atomic<uint32_t> settled{0};  // rare side: 1 once everybody at the frequent side knows

  void light() const noexcept { light_fence(full.load(std::memory_order_relaxed) == 0); }
  void heavy() noexcept;
};
static_assert(sizeof(FencePair) == 8);

}  // namespace lintel
#pragma GCC visibility pop

/* long_yields.h: learns from how long yields take whether they give the processor to a thread that
 * computes, for its time slice. Then a thread that waits sleeps at once: who is woken runs sooner.
 * Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_NETWORK_LONG_YIELDS_H
#define LINTEL_GASNET_NETWORK_LONG_YIELDS_H

#include <atomic>
#include <cstdint>

namespace lintel::gasnet {

/** Times in nanoseconds, of any clock. Any thread; one that comes between loses a finding. */
class LongYields {
 public:
  /** Processes that only wait have given the processor back by then. */
  static constexpr uint64_t kLongNs = 100'000;
  /** One yield in so many that would be long is tried. */
  static constexpr uint64_t kAvoidedTimes = 32;

  void note(uint64_t before_ns, uint64_t after_ns) {
    const uint64_t took_ns = after_ns - before_ns;
    if (took_ns >= kLongNs)
      avoided_until_ns_.store(after_ns + kAvoidedTimes * took_ns, std::memory_order_relaxed);
  }
  bool are_expected(uint64_t now_ns) const {
    return now_ns < avoided_until_ns_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> avoided_until_ns_{0};
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_NETWORK_LONG_YIELDS_H

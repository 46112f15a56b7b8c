/* long_yields.h: detects from the duration of yields that other threads compute for a whole time
 * slice after a yield. Then a waiting thread sleeps at once: a thread that is woken up runs sooner.
 * Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_NETWORK_LONG_YIELDS_H
#define LINTEL_GASNET_NETWORK_LONG_YIELDS_H

#include <atomic>
#include <cstdint>

namespace lintel::gasnet {

/** Times in nanoseconds of any clock. Any thread; concurrent calls may lose a measurement. */
class LongYields {
 public:
  /** A yield to processes that only wait takes less than this, also to several of them that send
   * and receive. A time slice is longer. */
  static constexpr uint64_t kLongNs = 400'000;
  /** After a long yield, yields are avoided for so many times its duration. */
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

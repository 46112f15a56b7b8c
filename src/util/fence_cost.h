// What the membarrier system call costs on this machine, and whether that is too much. Threads that
// note at the same time may lose a sample. Called by threads that are about to sleep.
#pragma once

#include <atomic>
#include <cstdint>

namespace lintel {

class FenceCost {
 public:
  // A full fence costs about 10 ns. For a sender with a few hundred messages between two sleeps of
  // the other side, these cost less than one membarrier of this price.
  static constexpr uint64_t too_much_ns = 10'000;
  static constexpr uint32_t notes_until_judged = 16;

  // True: it costs too much on average.
  [[nodiscard]] bool note(uint64_t took_ns) noexcept {
    const uint64_t cost = average_ns_.load(std::memory_order_relaxed);
    const uint64_t now = cost + took_ns / share - cost / share;
    average_ns_.store(now, std::memory_order_relaxed);
    return notes_.fetch_add(1, std::memory_order_relaxed) >= notes_until_judged &&
           now > too_much_ns;
  }

 private:
  static constexpr uint64_t share = 8;  // of the last one in the average

  std::atomic<uint64_t> average_ns_{0};
  std::atomic<uint32_t> notes_{0};
};

}  // namespace lintel

// Moves threads that share a processor to a free one. The kernel does that by itself
// after tens of milliseconds; a thread that is woken stays where it was if the idle processors are
// virtual ones that the host has halted.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace lintel {

enum class SearchResult : uint8_t {
  moved,     // or the thread's own processor has become free
  busy,      // another thread runs on the processor that was tried
  no_other,  // the thread may use no other processor
};

// Decides when a thread on a crowded processor searches for another one. One per process.
// Concurrent callers may overwrite each other, which changes when the next search takes place.
// Reads no clock. Message path, after microseconds of idle polls.
class RelocationSchedule {
 public:
  // The processor must be crowded for this long before a search.
  static constexpr uint64_t first_interval_ns = 1'000'000;
  // A search where all processors are busy may take two time slices, so the interval grows by this
  // factor after each one.
  static constexpr uint64_t growth = 2;
  static constexpr uint64_t longest_interval_ns = 1'024'000'000;

  // Set-up path.
  void use(bool enabled) noexcept { enabled_.store(enabled, std::memory_order_relaxed); }
  // To be called while the processor is crowded.
  [[nodiscard]] bool is_due(uint64_t now_ns) noexcept {
    const uint64_t last = last_crowded_ns_.load(std::memory_order_relaxed);
    last_crowded_ns_.store(now_ns, std::memory_order_relaxed);
    uint64_t due = due_ns_.load(std::memory_order_relaxed);
    if (now_ns - last > first_interval_ns)
      due_ns_.store(due = std::max(due, after(now_ns, first_interval_ns)),
                    std::memory_order_relaxed);
    return now_ns >= due && enabled_.load(std::memory_order_relaxed);
  }
  void note_search(SearchResult result, uint64_t now_ns) noexcept {
    uint64_t interval = first_interval_ns;
    if (result == SearchResult::busy)
      interval =
          std::min(interval_ns_.load(std::memory_order_relaxed) * growth, longest_interval_ns);
    interval_ns_.store(interval, std::memory_order_relaxed);
    due_ns_.store(after(now_ns, interval), std::memory_order_relaxed);
    last_crowded_ns_.store(now_ns, std::memory_order_relaxed);
  }

 private:
  // One to two intervals, so that two processes of one processor do not search at one time and find
  // each other.
  static uint64_t after(uint64_t now_ns, uint64_t interval_ns) noexcept {
    const uint64_t random = now_ns * 0x9e37'79b9'7f4a'7c15 >> 32;
    return now_ns + interval_ns + random % interval_ns;
  }

  std::atomic<bool> enabled_{true};
  std::atomic<uint64_t> last_crowded_ns_{0};
  std::atomic<uint64_t> due_ns_{0};
  std::atomic<uint64_t> interval_ns_{first_interval_ns};
};

// The calling thread tries one of the other processors that it may use, each time another one, and
// returns to its own if another thread runs there. Its affinity mask is the same afterwards. Makes
// system calls.
SearchResult move_to_free_processor() noexcept;

}  // namespace lintel

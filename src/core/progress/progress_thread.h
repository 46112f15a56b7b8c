// The thread that makes progress while no application thread does (spec 1.6: progress never needs
// the application). It polls only when nobody else polls. When there is nothing to do it sleeps,
// and wakes only to look whether peers live.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/progress/poller.h"
#include "util/service_thread.h"

namespace lintel {

// The times of the progress thread: how long it waits between two checks whether application
// threads poll, and how long it polls without a message before it sleeps. Used by that thread only.
class WatchTicks {
 public:
  // Longest tick, in shortest ticks. While the application polls, the thread checks more and more
  // rarely. A tick takes microseconds from the application, and tens of them on a virtual machine.
  static constexpr uint64_t longest_factor = 16;
  // The same where all peers can wake the thread.
  static constexpr uint64_t longest_factor_woken = 64;
  // Length of a tick, in shortest ticks, from which on peers can wake the thread.
  static constexpr uint64_t woken_factor = 8;
  static constexpr uint64_t idle_spin_ns = 5'000;

  // Set-up path. Without backoff all ticks are the shortest.
  void use(uint64_t shortest_ns, bool backoff) noexcept {
    shortest_ns_ = next_ns_ = shortest_ns;
    backoff_ = backoff;
  }
  // The application polled: time until the next check. `woken`: all peers can wake the thread.
  [[nodiscard]] uint64_t next_ns(bool woken) noexcept {
    const uint64_t longest_ns = shortest_ns_ * (woken ? longest_factor_woken : longest_factor);
    const uint64_t tick_ns = std::min(next_ns_, longest_ns);
    if (backoff_) next_ns_ = tick_ns * 2;
    return tick_ns;
  }
  // During a short tick the application may go to sleep. A message must then wake the application
  // only, and not this thread, too.
  [[nodiscard]] bool may_be_woken_in(uint64_t tick_ns) const noexcept {
    return tick_ns >= shortest_ns_ * woken_factor;
  }
  // Resets the ticks: the application no longer polls.
  void restart() noexcept { next_ns_ = shortest_ns_; }

  // These two decide when the polling thread sleeps.
  void note_work(uint64_t now_ns) noexcept { idle_since_ns_ = now_ns; }
  [[nodiscard]] bool is_idle(uint64_t now_ns) const noexcept {
    return now_ns - idle_since_ns_ > idle_spin_ns;
  }

 private:
  uint64_t shortest_ns_ = 0;
  uint64_t next_ns_ = 0;
  bool backoff_ = true;
  uint64_t idle_since_ns_ = 0;
};

enum class ProgressMode : uint8_t {
  automatic,  // waiting threads poll; the thread steps in when none does
  thread,     // the thread always polls, waiting threads never do
  caller,     // no thread: progress happens inside Portals calls only
};

class ProgressThread {
 public:
  // Set-up path. False: the system gives no thread.
  [[nodiscard]] bool start(Poller& poller, ProgressMode mode) noexcept;
  // Set-up path: returns when the thread has ended.
  void stop() noexcept;

 private:
  void run() noexcept;
  void run_always() noexcept;
  void run_when_needed() noexcept;
  void watch_application(uint32_t handoffs_seen, uint32_t rings_seen) noexcept;
  void take_over() noexcept LINTEL_RELEASE(polling);
  void bind_to_processors() noexcept;

  Poller* poller_ = nullptr;
  ProgressMode mode_ = ProgressMode::automatic;
  ServiceThread thread_;
  std::atomic<bool> stop_{false};
  uint64_t polls_seen_ = 0;  // rounds that are no news
  WatchTicks ticks_;
};

}  // namespace lintel

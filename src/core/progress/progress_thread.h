// The thread that makes progress while no application thread does (spec 1.6: progress never needs
// the application). It polls only when nobody else polls, and sleeps without any timer when there
// is nothing to do.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/progress/poller.h"
#include "core/progress/watch_ticks.h"
#include "util/service_thread.h"

namespace lintel {

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
  void watch_application(uint32_t handoffs_seen) noexcept;
  void take_over() noexcept;
  void bind_to_processors() noexcept;

  Poller* poller_ = nullptr;
  ProgressMode mode_ = ProgressMode::automatic;
  ServiceThread thread_;
  std::atomic<bool> stop_{false};
  uint64_t application_polls_seen_ = 0;
  WatchTicks ticks_;
};

}  // namespace lintel

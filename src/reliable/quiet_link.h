// Decides when the link is polled for frames. For a socket a poll is a system call. When no frame
// has come for a while and no timer is set, the link is not polled, and a watch notices arrivals.
// So a process with peers in shared memory only pays one load per poll for its network. Path into
// and out of sleep; the poller.
#pragma once

#include <cstdint>

#include "reliable/connection_timers.h"
#include "reliable/reliable_settings.h"
#include "transport/packet_link.h"
#include "util/descriptor_watch.h"

namespace lintel {

class QuietLink {
 public:
  // Without a descriptor: the first pause between polls, and how long it pays to poll before one. A
  // pause lasts as much longer as a timer is late and a thread takes to wake.
  static constexpr int64_t shortest_pause_ns = 50'000;
  static constexpr uint64_t spin_beside_pauses_ns = 8 * shortest_pause_ns;
  // Number of polls with frames since the last watch after which the watch is detached from the
  // descriptor. A poller that sleeps between messages keeps it attached.
  static constexpr unsigned polls_until_detached = 64;

  QuietLink(PacketLink& link, const ReliableSettings& settings, PollerWakeup& wakeup,
            ConnectionTimers& timers) noexcept
      : link_(link), settings_(settings), wakeup_(wakeup), timers_(timers) {}

  // Set-up path. From then on frames that come while the link is not polled ring the doorbell.
  void watch(Doorbell& doorbell) noexcept;
  void stop() noexcept { watch_.stop(); }

  // False: no frame can have come.
  [[nodiscard]] bool is_worth_asking() noexcept {
    if (!quiet_) return true;
    if (!wakeup_.is_set()) [[likely]]
      return false;
    leave();
    return true;
  }
  // Called after each poll of the link.
  void asked(unsigned frames, uint64_t now_ns) noexcept {
    if (frames != 0) {
      last_frame_ns_ = now_ns;
      if (watch_.is_idle()) [[unlikely]]
        note_busy();
    } else if (elapsed_ns(last_frame_ns_, now_ns) > settings_.quiet_after_ns) [[unlikely]] {
      go_quiet(now_ns);
    }
  }

  // These three implement Transport::arm(), disarm() and sleep_limit_ns().
  [[nodiscard]] bool arm() noexcept;
  // The watch stays enabled: another thread may sleep and rely on it, as the progress thread does
  // while an application thread polls for a moment. At worst it rings once without need.
  void disarm() noexcept {
    if (!quiet_) link_.disarm();
  }
  [[nodiscard]] int64_t sleep_limit_ns() const noexcept;

 private:
  void go_quiet(uint64_t now_ns) noexcept;
  void leave() noexcept;
  void note_busy() noexcept;
  bool start_watching() noexcept;

  PacketLink& link_;
  const ReliableSettings& settings_;
  PollerWakeup& wakeup_;
  ConnectionTimers& timers_;
  DescriptorWatch watch_;
  bool quiet_ = false;
  unsigned busy_polls_ = 0;  // polls with frames since the last watch
  uint64_t last_frame_ns_ = 0;
};

}  // namespace lintel

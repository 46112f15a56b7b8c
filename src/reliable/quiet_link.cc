#include "reliable/quiet_link.h"

#include <algorithm>

#include "util/log.h"

namespace lintel {

void QuietLink::watch(Doorbell& doorbell) noexcept {
  wakeup_.set_doorbell(doorbell);
  if (link_.descriptor() == PacketLink::no_descriptor || watch_.running()) return;
  std::string reason;
  if (!watch_.start(link_.descriptor(), wakeup_.flag(), doorbell, reason))
    log_message(LogLevel::warn, "%s: %s; idle processes keep a processor busy", link_.name(),
                reason.c_str());
}

// False: there is something to do already.
bool QuietLink::start_watching() noexcept {
  wakeup_.reset();
  if (timers_.has_new() || !link_.arm()) return false;
  busy_polls_ = 0;
  watch_.enable();
  return true;
}

void QuietLink::note_busy() noexcept {
  if (++busy_polls_ == polls_until_detached) watch_.detach();
}

void QuietLink::go_quiet(uint64_t now_ns) noexcept {
  if (!watch_.running() || settings_.polls_always) return;
  last_frame_ns_ = now_ns;  // delays the next attempt if this one fails
  if (timers_.is_empty()) quiet_ = start_watching();
}

// Ends the quiet state. The frame or timer that ended it has rung the doorbell of a sleeping
// poller.
void QuietLink::leave() noexcept {
  quiet_ = false;
  last_frame_ns_ = settings_.clock();
  watch_.disable();
  link_.disarm();
}

bool QuietLink::arm() noexcept {
  if (quiet_) return !wakeup_.is_set();
  return !watch_.running() || start_watching();
}

int64_t QuietLink::sleep_limit_ns() const noexcept {
  const uint64_t earliest = timers_.earliest_ns();
  const uint64_t now = settings_.clock();
  int64_t limit_ns = -1;
  if (earliest != ConnectionTimers::never)
    limit_ns = static_cast<int64_t>(elapsed_ns(now, earliest));
  if (watch_.running()) return limit_ns;
  // The poller checks the link itself: the longer nothing came, the more rarely, up to the limit of
  // the link.
  constexpr int64_t share_of_silence = 8;
  const auto silence_ns = static_cast<int64_t>(elapsed_ns(last_frame_ns_, now));
  const int64_t pause_ns =
      std::clamp(silence_ns / share_of_silence, shortest_pause_ns,
                 std::max(link_.properties().longest_pause_ns, shortest_pause_ns));
  return limit_ns < 0 ? pause_ns : std::min(limit_ns, pause_ns);
}

}  // namespace lintel

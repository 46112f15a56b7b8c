// Handles pauses in which this process itself was stopped, or did not poll: a signal, a batch
// system, a debugger, a paused virtual machine, a computation. No frame was read meanwhile, so that
// time does not count as silence of the peers. The poller. It has no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "util/assert.h"

namespace lintel {

class OwnPauses {
 public:
  // The part of the time without an answer that does not count.
  struct Excuse {
    uint64_t left_out_ns;
    bool full_time;  // no time until now counts: peers get the full time again

    // Returns the time from which on the silence counts that began at `since_ns`.
    [[nodiscard]] uint64_t moved(uint64_t since_ns, uint64_t now_ns) const noexcept {
      return full_time ? now_ns : std::min(since_ns + left_out_ns, now_ns);
    }
  };

  explicit OwnPauses(uint64_t peer_timeout_ns) noexcept
      : timeout_ns_(peer_timeout_ns),
        counted_ns_(std::max<uint64_t>(peer_timeout_ns / 16, 100'000'000)) {}

  // Whether an action that is late by this time shows a pause.
  [[nodiscard]] bool is_pause(uint64_t late_ns) const noexcept { return late_ns > counted_ns_; }
  // Ends a pause. A part of each pause counts. The full time is given again only if this process
  // was without pauses for as long in between. So a process that rarely polls still finds that a
  // peer is dead.
  [[nodiscard]] Excuse end(uint64_t late_ns, uint64_t now_ns) noexcept {
    LINTEL_ASSERT(is_pause(late_ns));
    LINTEL_ASSERT(late_ns <= now_ns);
    const uint64_t began_ns = now_ns - late_ns;
    const bool full_time = excused_ns_ == 0 || began_ns >= excused_ns_ + timeout_ns_;
    excused_ns_ = full_time ? now_ns : std::min(excused_ns_ + late_ns, now_ns);
    return {late_ns - counted_ns_, full_time};
  }

 private:
  uint64_t timeout_ns_;
  uint64_t counted_ns_;  // the part of a pause that counts
  // The time since this value is the time without pauses since the full time was last given. 0: the
  // full time was never given.
  uint64_t excused_ns_ = 0;
};

}  // namespace lintel

// Whether this process itself was stopped, or did not poll for long: a signal, a batch system, a
// debugger, a paused virtual machine, a computation. Nobody looked at the peers meanwhile, so that
// time is no silence of theirs. The poller. It has no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "util/assert.h"

namespace lintel {

class OwnPauses {
 public:
  // Of the time for which peers have not answered, this is left out.
  struct Excuse {
    uint64_t left_out_ns;
    bool full_time;  // all of it: they get the full time again

    // When it began to count, for what began at `since_ns`.
    [[nodiscard]] uint64_t moved(uint64_t since_ns, uint64_t now_ns) const noexcept {
      return full_time ? now_ns : std::min(since_ns + left_out_ns, now_ns);
    }
  };

  explicit OwnPauses(uint64_t peer_timeout_ns) noexcept
      : timeout_ns_(peer_timeout_ns),
        counted_ns_(std::max<uint64_t>(peer_timeout_ns / 16, 100'000'000)) {}

  // What had to be done was done so much later.
  [[nodiscard]] bool is_pause(uint64_t late_ns) const noexcept { return late_ns > counted_ns_; }
  // A part of each pause counts, and the full time is given again only when this process was
  // attentive for as long in between. So a process that hardly ever polls still finds out that a
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
  uint64_t counted_ns_;  // of a pause
  // The time since then, without pauses, is how long it was attentive since it last gave the full
  // time again. 0: it never has.
  uint64_t excused_ns_ = 0;
};

}  // namespace lintel

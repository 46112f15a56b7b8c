// How long a peer has been silent, without the time in which this process itself did not poll.
// Message path. It has no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "util/assert.h"

namespace lintel {

// Other threads take the time, too: `since` may be a little later than the poller's `now`.
[[nodiscard]] inline uint64_t elapsed_ns(uint64_t since, uint64_t now) noexcept {
  return now > since ? now - since : 0;
}

// Whether this process itself was stopped, or did not poll for long: a signal, a batch system, a
// debugger, a paused virtual machine, a computation. Nobody polled meanwhile, so that time is no
// silence of its peers. The poller.
class OwnPauses {
 public:
  // By how much the time in which peers must answer is extended.
  struct Extension {
    uint64_t by_ns;
    bool full_time;  // it begins again

    // When it began to count, for what began at `since_ns`.
    [[nodiscard]] uint64_t moved(uint64_t since_ns, uint64_t now_ns) const noexcept {
      return full_time ? now_ns : std::min(since_ns + by_ns, now_ns);
    }
  };

  explicit OwnPauses(uint64_t peer_timeout_ns) noexcept
      : timeout_ns_(peer_timeout_ns),
        counted_ns_(std::max<uint64_t>(peer_timeout_ns / 16, 100'000'000)) {}

  // `late_ns`: delay of what had to be done.
  [[nodiscard]] bool is_pause(uint64_t late_ns) const noexcept { return late_ns > counted_ns_; }
  // A part of each pause counts, and the full time is given again only when this process polled for
  // as long in between. So a process that hardly ever polls still finds out that a peer is dead.
  [[nodiscard]] Extension end(uint64_t late_ns, uint64_t now_ns) noexcept {
    LINTEL_ASSERT(is_pause(late_ns));
    LINTEL_ASSERT(late_ns <= now_ns);
    const uint64_t began_ns = now_ns - late_ns;
    const bool full_time = extended_ns_ == 0 || began_ns >= extended_ns_ + timeout_ns_;
    extended_ns_ = full_time ? now_ns : std::min(extended_ns_ + late_ns, now_ns);
    return {late_ns - counted_ns_, full_time};
  }

 private:
  uint64_t timeout_ns_;
  uint64_t counted_ns_;  // of a pause
  // The time since then, without pauses, is how long it polled since it last gave the full time
  // again. 0: it never has.
  uint64_t extended_ns_ = 0;
};

// How long a peer has been silent, and whether it has to answer. The connection's lock is held.
class PeerSilence {
 public:
  // It is reported that no socket is there. The peer may be about to start, or the report be
  // forged: it counts after this time, and this many reports, without a frame of the peer.
  static constexpr uint64_t unreachable_after_ns = 1'000'000'000;
  // For peers of this node the kernel itself reports it, which cannot be forged.
  static constexpr uint64_t unreachable_on_node_after_ns = 10'000'000;
  static constexpr uint8_t least_reports = 4;

  void heard(uint64_t now_ns) noexcept {
    heard_ns_ = now_ns;
    awaited_since_ns_ = 0;
    reports_ = 0;
  }
  // Begins to wait for an answer of the peer.
  void await(uint64_t now_ns) noexcept {
    if (awaited_since_ns_ == 0) awaited_since_ns_ = now_ns;
  }
  void probed(uint64_t now_ns) noexcept { probed_ns_ = now_ns; }
  void extend(const OwnPauses::Extension& extension, uint64_t now_ns) noexcept {
    if (awaited_since_ns_ != 0) awaited_since_ns_ = extension.moved(awaited_since_ns_, now_ns);
    LINTEL_ASSERT(awaited_since_ns_ <= now_ns);
    reports_ = 0;
  }
  void report_unreachable(uint64_t now_ns) noexcept {
    if (reports_ == 0) reported_since_ns_ = now_ns;
    if (reports_ < least_reports) ++reports_;
    LINTEL_ASSERT(reports_ <= least_reports);
  }

  [[nodiscard]] uint64_t lasts_ns(uint64_t now_ns) const noexcept {
    return elapsed_ns(heard_ns_, now_ns);
  }
  // For how long it has not given the answer that is awaited; 0: none is.
  [[nodiscard]] uint64_t awaited_ns(uint64_t now_ns) const noexcept {
    return awaited_since_ns_ != 0 ? elapsed_ns(awaited_since_ns_, now_ns) : 0;
  }
  // Time of the last frame of the peer, or of the last probe to it.
  [[nodiscard]] uint64_t last_sign_ns() const noexcept { return std::max(heard_ns_, probed_ns_); }
  [[nodiscard]] bool is_unreachable(bool on_own_node, uint64_t now_ns) const noexcept {
    return reports_ == least_reports &&
           elapsed_ns(reported_since_ns_, now_ns) >
               (on_own_node ? unreachable_on_node_after_ns : unreachable_after_ns);
  }

 private:
  uint64_t heard_ns_ = 0;
  uint64_t awaited_since_ns_ = 0;  // 0: it has nothing to answer
  uint64_t probed_ns_ = 0;
  uint64_t reported_since_ns_ = 0;
  uint8_t reports_ = 0;  // since the last frame
};

}  // namespace lintel

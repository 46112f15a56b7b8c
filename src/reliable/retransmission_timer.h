// Decides when a sender acts because no acknowledgement comes: first it sends probes, then all
// frames again. Message path. It has no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "util/assert.h"

namespace lintel {

// Measured round trips and the retransmission timeout (RFC 6298, with bounds for fast networks).
class RoundTrip {
 public:
  // Until something was measured, and the bounds of what may come out.
  static constexpr uint64_t first_timeout_ns = 5'000'000;
  static constexpr uint64_t longest_timeout_ns = 200'000'000;
  static constexpr uint64_t acknowledgement_delay_ns = 100'000;

  void open(uint64_t shortest_timeout_ns) noexcept {
    *this = RoundTrip{};
    shortest_timeout_ns_ = shortest_timeout_ns;
  }

  void measure(uint64_t sample_ns) noexcept {
    if (smoothed_ns_ == 0) {
      smoothed_ns_ = std::max<uint64_t>(sample_ns, 1);
      variation_ns_ = sample_ns / 2;
      return;
    }
    const uint64_t difference =
        sample_ns > smoothed_ns_ ? sample_ns - smoothed_ns_ : smoothed_ns_ - sample_ns;
    variation_ns_ = (3 * variation_ns_ + difference) / 4;
    smoothed_ns_ = (7 * smoothed_ns_ + sample_ns) / 8;
  }

  [[nodiscard]] uint64_t smoothed_ns() const noexcept { return smoothed_ns_; }
  // Time to wait for an acknowledgement, which may be delayed, before a probe. It doubles with each
  // probe in a row without progress.
  [[nodiscard]] uint64_t probe_delay_ns(unsigned probes) const noexcept {
    return (smoothed_ns_ == 0 ? shortest_timeout_ns_ : 2 * smoothed_ns_ + acknowledgement_delay_ns)
           << std::min(probes, 16u);
  }
  // Doubled for each timeout in a row without an answer.
  [[nodiscard]] uint64_t timeout_ns(unsigned timeouts_in_a_row) const noexcept {
    const uint64_t measured_ns =
        smoothed_ns_ == 0 ? std::max(first_timeout_ns, shortest_timeout_ns_)
                          : std::max(smoothed_ns_ + 4 * variation_ns_, shortest_timeout_ns_);
    LINTEL_ASSERT(measured_ns >= shortest_timeout_ns_);
    return std::min(measured_ns << std::min(timeouts_in_a_row, 8u), longest_timeout_ns);
  }

 private:
  uint64_t smoothed_ns_ = 0;  // 0: nothing measured yet
  uint64_t variation_ns_ = 0;
  uint64_t shortest_timeout_ns_ = 0;
};

class RetransmissionTimer {
 public:
  void open(uint64_t shortest_timeout_ns) noexcept {
    *this = RetransmissionTimer{};
    round_trip_.open(shortest_timeout_ns);
  }
  [[nodiscard]] const RoundTrip& round_trip() const noexcept { return round_trip_; }

  // Called when frames are sent and none were on the way.
  void start(uint64_t now_ns) noexcept {
    start_ns_ = now_ns;
    probed_ = false;
  }
  // Something was acknowledged.
  void note_progress(uint64_t now_ns) noexcept {
    start_ns_ = now_ns;
    probes_ = 0;
  }
  // The acknowledged frame was sent once. If the timeout is shorter than the round trip, an
  // acknowledgement of a repeated frame may be for its first copy, and the timeout stays long.
  void measure(uint64_t sample_ns) noexcept {
    timeouts_in_a_row_ = 0;
    round_trip_.measure(sample_ns);
  }
  // A probe was answered: frames sent before it have arrived or are lost. This counts like a
  // timeout, so that frames that are lost repeatedly are sent more and more rarely.
  void note_answer() noexcept {
    if (has_timed_out()) ++timeouts_in_a_row_;
  }
  // The path works again.
  void forget_timeouts() noexcept { timeouts_in_a_row_ = probes_ = 0; }
  [[nodiscard]] bool has_timed_out() const noexcept { return timeouts_in_a_row_ != 0; }

  // Returns when time_out() is due. Frames are on the way.
  [[nodiscard]] uint64_t deadline_ns() const noexcept {
    return start_ns_ + std::min(probe_delay_ns(), round_trip_.timeout_ns(timeouts_in_a_row_));
  }
  // Called at the deadline. False: a probe is due.
  [[nodiscard]] bool time_out(uint64_t now_ns) noexcept {
    if (now_ns < start_ns_ + round_trip_.timeout_ns(timeouts_in_a_row_)) {
      ++probes_;
      probed_ = true;
      return false;
    }
    ++timeouts_in_a_row_;
    start(now_ns);
    return true;
  }

 private:
  // One probe is sent between two timeouts, regardless of earlier ones: only its answer shows that
  // repeated frames are lost, too, while short frames arrive (PathMtu).
  [[nodiscard]] uint64_t probe_delay_ns() const noexcept {
    const uint64_t delay_ns = round_trip_.probe_delay_ns(probes_);
    if (!has_timed_out() || probed_) return delay_ns;
    return std::min(delay_ns, round_trip_.timeout_ns(timeouts_in_a_row_) / 2);
  }

  RoundTrip round_trip_;
  uint64_t start_ns_ = 0;  // last sending into an empty network, or last progress
  unsigned timeouts_in_a_row_ = 0;
  uint16_t probes_ = 0;  // probes since the last progress
  bool probed_ = false;  // a probe was sent since start_ns_
};

}  // namespace lintel

// The congestion window: the number of bytes that may be on the way to a peer. It grows while
// frames arrive, and shrinks with the share of frames that are lost and with long round trips
// (queues). Message path.
//
// The window is adapted once per round trip. A loss of one per cent takes one per cent off the
// window: a bad cable costs less than a full switch, which loses much more or causes delay. The
// shortest round trip of a round counts, so that a process that runs late is not mistaken for a
// queue. The allowed queue depends on the window, as in Swift (Kumar et al., SIGCOMM 2020): small
// windows may cause a longer one, so that many senders share a queue equally.
#pragma once

#include <cstdint>

#include "util/assert.h"

namespace lintel {

class Congestion {
 public:
  // Delay that the smallest windows may cause in addition to the delay that any window may cause.
  static constexpr double shared_delay_ns = 100'000;

  // `most_bytes`: what the peer can take at once; `frame_bytes`: the cost of the largest frame;
  // `queue_delay_ns`: the delay by a queue that any window may cause.
  void open(uint64_t most_bytes, uint32_t frame_bytes, uint64_t queue_delay_ns) noexcept;

  // Changes the cost of the largest frame.
  void set_frame_bytes(uint32_t frame_bytes) noexcept;

  // Processors convert to signed numbers in one instruction, to unsigned ones in six.
  [[nodiscard]] uint64_t window_bytes() const noexcept {
    LINTEL_ASSERT(window_ >= 0 && window_ <= most_);
    return static_cast<uint64_t>(static_cast<int64_t>(window_));
  }

  void delivered(uint64_t bytes) noexcept;
  void measured(uint64_t round_trip_ns, uint64_t now_ns) noexcept;
  void lost(uint64_t bytes) noexcept { lost_in_round_ += bytes; }
  void round_ended() noexcept;
  // Called when no acknowledgement came for a whole timeout.
  void timed_out() noexcept;

 private:
  void shrink(double factor) noexcept;
  [[nodiscard]] double excess_ns(uint64_t round_trip_ns) const noexcept;

  double window_ = 0;
  double threshold_ = 0;  // below it the window doubles in a round, above it grows by a frame
  double most_ = 0;
  double least_ = 0;
  double frame_ = 0;
  double allowed_delay_ns_ = 0;
  uint64_t delivered_in_round_ = 0;
  uint64_t lost_in_round_ = 0;
  uint64_t shortest_in_round_ns_ = UINT64_MAX;
  uint64_t base_ns_ = UINT64_MAX;       // shortest round trip of this and the last period
  uint64_t next_base_ns_ = UINT64_MAX;  // shortest round trip of this period
  uint64_t period_end_ns_ = 0;
};

}  // namespace lintel

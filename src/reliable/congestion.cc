// The window's growth and decrease. Message path.
#include "reliable/congestion.h"

#include <algorithm>
#include <cmath>

namespace lintel {

namespace {

// Smallest window, in frames, and the first one. When all processes begin to send to all others, a
// larger one would fill the buffers of switches before anything is measured.
constexpr double least_frames = 2;
constexpr double strongest_decrease = 0.5;
constexpr double share_of_excess = 0.8;
// Share of the allowed delay at which the doubling ends, so that many senders do not fill a queue.
constexpr double share_for_doubling = 0.2;
// Allowed delay per byte of the frame length. Links with long frames are made in software, and
// their processes may run in turns: a frame waits for others.
constexpr double delay_ns_per_frame_byte = 6;
// The windows, in frames, up to which a sender may cause all of the shared delay, and from which it
// may cause none.
constexpr double small_frames = 0.1;
constexpr double large_frames = 100;
// Routes change: the shortest round trip is measured anew.
constexpr uint64_t base_period_ns = 10'000'000'000;

}  // namespace

void Congestion::open(uint64_t most_bytes, uint32_t frame_bytes, uint64_t queue_delay_ns) noexcept {
  *this = Congestion{};
  // A peer that can take less than a frame still gets one at a time.
  most_ = std::max(static_cast<double>(most_bytes), static_cast<double>(frame_bytes));
  set_frame_bytes(frame_bytes);
  window_ = least_;
  threshold_ = most_;
  allowed_delay_ns_ =
      std::max(static_cast<double>(queue_delay_ns), delay_ns_per_frame_byte * frame_);
}

void Congestion::set_frame_bytes(uint32_t frame_bytes) noexcept {
  frame_ = frame_bytes;
  least_ = std::min(least_frames * frame_, most_);
  window_ = std::max(window_, least_);
}

// Returns by how much a round trip exceeds the shortest one plus the allowed delay; at most 0 if it
// does not.
double Congestion::excess_ns(uint64_t round_trip_ns) const noexcept {
  const double beyond_ns =
      static_cast<double>(round_trip_ns) - static_cast<double>(base_ns_) - allowed_delay_ns_;
  if (beyond_ns <= 0) return beyond_ns;
  const double least = 1 / std::sqrt(large_frames);
  const double slope = shared_delay_ns / (1 / std::sqrt(small_frames) - least);
  const double shared_ns = slope * (std::sqrt(frame_ / window_) - least);
  return beyond_ns - std::clamp(shared_ns, 0.0, shared_delay_ns);
}

void Congestion::delivered(uint64_t bytes) noexcept {
  delivered_in_round_ += bytes;
  if (window_ >= most_) return;
  const auto amount = static_cast<double>(bytes);
  LINTEL_ASSERT(window_ >= least_ && least_ > 0);
  window_ += window_ < threshold_ ? amount : frame_ * amount / window_;
  window_ = std::min(window_, most_);
}

void Congestion::measured(uint64_t round_trip_ns, uint64_t now_ns) noexcept {
  shortest_in_round_ns_ = std::min(shortest_in_round_ns_, round_trip_ns);
  next_base_ns_ = std::min(next_base_ns_, round_trip_ns);
  base_ns_ = std::min(base_ns_, round_trip_ns);
  const auto queued_ns = static_cast<double>(round_trip_ns - base_ns_);
  if (queued_ns > share_for_doubling * allowed_delay_ns_)
    threshold_ = std::min(threshold_, window_);
  if (now_ns < period_end_ns_) return;
  if (period_end_ns_ != 0) base_ns_ = next_base_ns_;
  next_base_ns_ = UINT64_MAX;
  period_end_ns_ = now_ns + base_period_ns;
}

void Congestion::shrink(double factor) noexcept {
  LINTEL_ASSERT(factor <= 1);
  window_ = std::max(window_ * std::max(factor, strongest_decrease), least_);
  threshold_ = window_;
}

void Congestion::round_ended() noexcept {
  if (lost_in_round_ != 0) {
    const auto lost = static_cast<double>(lost_in_round_);
    shrink(1 - lost / (lost + static_cast<double>(delivered_in_round_)));
  } else if (shortest_in_round_ns_ != UINT64_MAX) {
    const double excess = excess_ns(shortest_in_round_ns_);
    if (excess > 0)
      shrink(1 - share_of_excess * excess / static_cast<double>(shortest_in_round_ns_));
  }
  delivered_in_round_ = 0;
  lost_in_round_ = 0;
  shortest_in_round_ns_ = UINT64_MAX;
}

void Congestion::timed_out() noexcept {
  threshold_ = std::max(window_ / 2, least_);
  window_ = least_;
  delivered_in_round_ = 0;
  lost_in_round_ = 0;
}

}  // namespace lintel

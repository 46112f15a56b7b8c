// The window's growth and decrease. Message path.
#include "reliable/congestion.h"

#include <algorithm>

namespace lintel {

namespace {

constexpr double first_frames = 16;
constexpr double least_frames = 2;
constexpr double strongest_decrease = 0.5;
// Routes change: the shortest round trip is measured anew.
constexpr uint64_t base_period_ns = 10'000'000'000;

}  // namespace

void Congestion::open(uint64_t most_bytes, uint32_t frame_bytes) noexcept {
  *this = Congestion{};
  frame_ = frame_bytes;
  // A peer that can take less than a frame still gets one at a time.
  most_ = std::max(static_cast<double>(most_bytes), frame_);
  least_ = std::min(least_frames * frame_, most_);
  window_ = std::min(first_frames * frame_, most_);
  threshold_ = most_;
}

void Congestion::delivered(uint64_t bytes) noexcept {
  delivered_in_round_ += bytes;
  if (window_ >= most_) return;
  const auto amount = static_cast<double>(bytes);
  window_ += window_ < threshold_ ? amount : frame_ * amount / window_;
  window_ = std::min(window_, most_);
}

void Congestion::measured(uint64_t round_trip_ns, uint64_t now_ns) noexcept {
  shortest_in_round_ns_ = std::min(shortest_in_round_ns_, round_trip_ns);
  next_base_ns_ = std::min(next_base_ns_, round_trip_ns);
  base_ns_ = std::min(base_ns_, round_trip_ns);
  if (now_ns < period_end_ns_) return;
  if (period_end_ns_ != 0) base_ns_ = next_base_ns_;
  next_base_ns_ = UINT64_MAX;
  period_end_ns_ = now_ns + base_period_ns;
}

void Congestion::shrink(double factor) noexcept {
  window_ = std::max(window_ * std::max(factor, strongest_decrease), least_);
  threshold_ = window_;
}

void Congestion::round_ended() noexcept {
  if (lost_in_round_ != 0) {
    const auto lost = static_cast<double>(lost_in_round_);
    shrink(1 - lost / (lost + static_cast<double>(delivered_in_round_)));
  } else if (shortest_in_round_ns_ != UINT64_MAX &&
             shortest_in_round_ns_ > base_ns_ + queue_delay_ns) {
    const auto excess = static_cast<double>(shortest_in_round_ns_ - base_ns_ - queue_delay_ns);
    shrink(1 - 0.5 * excess / static_cast<double>(shortest_in_round_ns_));
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

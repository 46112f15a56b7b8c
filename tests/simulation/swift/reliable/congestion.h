// The window of Swift, for comparison. The program simulation_swift uses it instead of
// src/reliable/congestion.h. (Kumar et al., "Swift: Delay is Simple and Effective for Congestion
// Control in the Datacenter", SIGCOMM 2020.) Three parts of Swift are missing: pacing of windows
// below one frame, scaling of targets by hops, and the separate window for the host. Parameters
// that the paper gives have its values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace lintel {

class Congestion {
 public:
  void open(uint64_t most_bytes, uint32_t frame_bytes, uint64_t) noexcept {
    *this = Congestion{};
    frame_ = frame_bytes;
    most_ = std::max(static_cast<double>(most_bytes), frame_);
    window_ = std::min(first_frames * frame_, most_);
  }

  void set_frame_bytes(uint32_t frame_bytes) noexcept {
    frame_ = std::min(static_cast<double>(frame_bytes), most_);
    window_ = std::max(window_, frame_);
  }

  [[nodiscard]] uint64_t window_bytes() const noexcept { return static_cast<uint64_t>(window_); }

  void delivered(uint64_t bytes) noexcept {
    if (delay_ns_ < target_ns())
      window_ = std::min(window_ + frame_ * static_cast<double>(bytes) / window_, most_);
  }
  void measured(uint64_t round_trip_ns, uint64_t) noexcept {
    base_ns_ = std::min(base_ns_, static_cast<double>(round_trip_ns));
    delay_ns_ = static_cast<double>(round_trip_ns);
    if (delay_ns_ > target_ns())
      decrease(std::max(1 - beta * (delay_ns_ - target_ns()) / delay_ns_, 1 - most_decrease));
  }
  void lost(uint64_t) noexcept { decrease(1 - most_decrease); }
  void round_ended() noexcept { may_decrease_ = true; }
  void timed_out() noexcept { window_ = std::max(frame_, window_ * (1 - most_decrease)); }

 private:
  static constexpr double first_frames = 2;  // as in src/reliable/congestion.h
  static constexpr double beta = 0.8;
  static constexpr double most_decrease = 0.5;
  static constexpr double base_target_ns = 25'000;
  // Scaling of the target by the window, so that many small flows share a queue fairly.
  static constexpr double flow_range_ns = 100'000;
  static constexpr double least_scaled_frames = 0.1;
  static constexpr double most_scaled_frames = 100;

  [[nodiscard]] double target_ns() const noexcept {
    const double alpha =
        flow_range_ns / (1 / std::sqrt(least_scaled_frames) - 1 / std::sqrt(most_scaled_frames));
    const double scaled =
        alpha / std::sqrt(window_ / frame_) - alpha / std::sqrt(most_scaled_frames);
    return base_ns_ + base_target_ns + std::clamp(scaled, 0.0, flow_range_ns);
  }
  // At most once in a round trip.
  void decrease(double factor) noexcept {
    if (!may_decrease_) return;
    window_ = std::max(window_ * factor, frame_);
    may_decrease_ = false;
  }

  double window_ = 0;
  double most_ = 0;
  double frame_ = 1;
  double base_ns_ = 1e12;
  double delay_ns_ = 0;
  bool may_decrease_ = true;
};

}  // namespace lintel

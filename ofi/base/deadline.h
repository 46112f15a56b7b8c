// The time until which a call waits.
#pragma once

#include <algorithm>
#include <chrono>

namespace lintel::ofi {

class Deadline {
 public:
  // Less than 0: for ever.
  explicit Deadline(int timeout_ms) noexcept
      : is_limited_(timeout_ms >= 0), end_(Clock::now() + std::chrono::milliseconds(timeout_ms)) {}

  [[nodiscard]] bool is_over() const noexcept { return is_limited_ && Clock::now() >= end_; }
  // Milliseconds that are left, at most `most`.
  [[nodiscard]] int left_ms(int most) const noexcept {
    if (!is_limited_) return most;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
    return static_cast<int>(std::clamp<long>(left, 0, most));
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool is_limited_;
  Clock::time_point end_;
};

}  // namespace lintel::ofi

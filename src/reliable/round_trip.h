// Measured round trips and the retransmission timeout (RFC 6298, with bounds for fast networks).
// Message path.
#pragma once

#include <algorithm>
#include <cstdint>

#include "util/assert.h"

namespace lintel {

class RoundTrip {
 public:
  // Timeout until the first measurement, maximum timeout, and the delay of acknowledgements that
  // probe_delay_ns() allows for.
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
  // Returns how long to wait for an acknowledgement, which may be delayed, before a probe requests
  // one. Doubled for each probe in a row without progress.
  [[nodiscard]] uint64_t probe_delay_ns(unsigned probes) const noexcept {
    return (smoothed_ns_ == 0 ? shortest_timeout_ns_ : 2 * smoothed_ns_ + acknowledgement_delay_ns)
           << std::min(probes, 16u);
  }
  // Returns the timeout of retransmission. Doubled for each timeout in a row without an answer.
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

}  // namespace lintel

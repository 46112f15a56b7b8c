// What came from a peer and was not acknowledged yet. Message path; the connection's lock is held.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lintel {

class PendingAcknowledgement {
 public:
  static constexpr uint64_t age_unit_ns = 4096;  // of FrameHeader::ack_delay

  // True: an acknowledgement has to go by deadline_ns(), and before there was none to go.
  [[nodiscard]] bool arrived(uint32_t bytes, uint64_t now_ns, uint64_t delay_ns) noexcept {
    newest_arrival_ns_ = now_ns;
    bytes_ += bytes;
    if (deadline_ns_ != UINT64_MAX) return false;
    deadline_ns_ = now_ns + delay_ns;
    return true;
  }
  // One went, by itself or with a frame.
  void went() noexcept {
    bytes_ = 0;
    deadline_ns_ = UINT64_MAX;
  }
  void put_off(uint64_t until_ns) noexcept { deadline_ns_ = until_ns; }

  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] uint64_t deadline_ns() const noexcept { return deadline_ns_; }
  // Of the newest arrival, as FrameHeader::ack_delay.
  [[nodiscard]] uint8_t age(uint64_t now_ns) const noexcept {
    if (newest_arrival_ns_ == 0 || now_ns <= newest_arrival_ns_) return 0;
    return static_cast<uint8_t>(
        std::min<uint64_t>((now_ns - newest_arrival_ns_) / age_unit_ns, 255));
  }

 private:
  uint64_t bytes_ = 0;
  uint64_t newest_arrival_ns_ = 0;
  uint64_t deadline_ns_ = UINT64_MAX;
};

}  // namespace lintel

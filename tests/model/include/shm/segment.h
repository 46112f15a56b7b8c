// Stands in for src/shm/segment.h in the model of joint copies: what these use of a segment.
#pragma once

#include "shm/segment_layout.h"

namespace lintel {

inline constexpr uint32_t no_lane = UINT32_MAX;

class Segment {
 public:
  Segment(SegmentHeader& header, uint64_t nonce) noexcept : header_(header), nonce_(nonce) {}
  [[nodiscard]] SegmentHeader& header() const noexcept { return header_; }
  [[nodiscard]] Doorbell& doorbell() const noexcept { return header_.doorbell; }
  [[nodiscard]] uint64_t nonce() const noexcept { return nonce_; }

 private:
  SegmentHeader& header_;
  const uint64_t nonce_;
};

}  // namespace lintel

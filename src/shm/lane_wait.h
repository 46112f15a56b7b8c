// What a link without a lane knows about its chance to get one. Under the send lock of the peer.
//
// A message that goes through another lane must not overtake those in the lane that was returned
// before. So nothing is claimed until the owner has emptied that lane.
#pragma once

#include <cstdint>

#include "shm/peer_segment.h"

namespace lintel {

class LaneWait {
 public:
  // A sleeping sender without a lane tries again after this time.
  static constexpr uint64_t retry_ns = 1'000'000;

  void note_returned(uint32_t lane) noexcept { returned_ = lane; }

  // Whether to try to claim a lane now. A waiting sender tries again when a lane became free, and
  // every retry_ns, since the processes that were asked for a lane may be stopped.
  [[nodiscard]] bool may_claim(const PeerSegment& segment, uint64_t nonce, uint64_t now) noexcept {
    if (returned_ != no_lane) {
      if (segment.is_returned(returned_, nonce)) return false;
      returned_ = no_lane;
    }
    const uint32_t freed = segment.lanes_freed();
    if (waits_ && freed == freed_seen_ && now < next_try_ns_) return false;
    freed_seen_ = freed;
    next_try_ns_ = now + retry_ns;
    return true;
  }
  // What came of it. True: that changes whether the link waits.
  [[nodiscard]] bool set_waiting(bool waits) noexcept {
    const bool changes = waits_ != waits;
    waits_ = waits;
    return changes;
  }

 private:
  uint32_t returned_ = no_lane;
  uint32_t freed_seen_ = 0;
  uint64_t next_try_ns_ = 0;
  bool waits_ = false;
};

}  // namespace lintel

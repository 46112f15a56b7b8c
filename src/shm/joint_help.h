// Helps a peer that copies from or to memory of this process (joint_copy.h). Message path of large
// payloads.
#pragma once

#include <cstdint>

#include "shm/joint_copy.h"
#include "shm/receive_lanes.h"
#include "shm/segment.h"
#include "shm/shm_link.h"
#include "transport/transport.h"

namespace lintel {

class JointHelp {
 public:
  JointHelp(const Segment& own, const ReceiveLanes& lanes) noexcept : own_(own), lanes_(lanes) {}

  [[nodiscard]] bool wanted() const noexcept {
    return own_.header().help_wanted.load(std::memory_order_relaxed) != seen_;
  }
  // Returns the number of chunks: as long as there are any, it is too early to sleep.
  unsigned help(MessageSink& sink) noexcept LINTEL_REQUIRES(polling);

 private:
  bool copy(MessageSink& sink, ShmLink& link, const JointChunk& chunk, bool to_owner) noexcept
      LINTEL_REQUIRES(polling);

  const Segment& own_;
  const ReceiveLanes& lanes_;
  uint64_t seen_ = 0;
};

}  // namespace lintel

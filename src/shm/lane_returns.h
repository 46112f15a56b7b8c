// Returns lanes in segments of peers which their owners recall. Connection path, within poll().
#pragma once

#include "shm/shm_links.h"
#include "transport/transport.h"

namespace lintel {

class LaneReturns {
 public:
  LaneReturns(const Segment& own, ShmLinks& links) noexcept : own_(own), links_(links) {}

  // Cheap unless a peer has recalled a lane since the last look.
  void look(MessageSink& sink) noexcept LINTEL_REQUIRES(polling);
  // Some could not be returned yet: look again later.
  [[nodiscard]] bool postponed() const noexcept { return postponed_; }

 private:
  const Segment& own_;
  ShmLinks& links_;
  uint32_t recalls_seen_ = 0;
  bool postponed_ = false;
};

}  // namespace lintel

// Accepts peers that connect: finds the lanes that they claimed in this process's segment and
// checks their identity. Takes back the lanes that they return. Connection path, within poll().
#pragma once

#include <cstdint>

#include "shm/link_ends.h"
#include "shm/receive_lanes.h"
#include "shm/segment.h"
#include "shm/shm_links.h"
#include "transport/transport.h"

namespace lintel {

class ClaimAcceptor {
 public:
  ClaimAcceptor(const Segment& segment, ShmLinks& links, ReceiveLanes& lanes,
                LinkFailures& failures) noexcept
      : segment_(segment), links_(links), lanes_(lanes), failures_(failures) {}

  // A lane was claimed, closed, returned or wanted since the last look.
  [[nodiscard]] bool anything_new() const noexcept {
    return segment_.header().lane_generation.load(std::memory_order_acquire) != generation_seen_;
  }
  // Some claims could not be looked into for want of resources: look again later.
  [[nodiscard]] bool postponed() const noexcept { return postponed_; }
  void look(MessageSink& sink) noexcept LINTEL_REQUIRES(polling);

  [[nodiscard]] uint64_t refused() const noexcept { return refused_; }

 private:
  void look_at(MessageSink& sink, uint32_t lane) noexcept LINTEL_REQUIRES(polling);
  void accept(MessageSink& sink, uint32_t lane) noexcept LINTEL_REQUIRES(polling);
  void take_back(MessageSink& sink, uint32_t lane) noexcept LINTEL_REQUIRES(polling);

  const Segment& segment_;
  ShmLinks& links_;
  ReceiveLanes& lanes_;
  LinkFailures& failures_;
  uint32_t generation_seen_ = 0;
  bool postponed_ = false;
  uint64_t refused_ = 0;
};

}  // namespace lintel

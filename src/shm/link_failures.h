// The end of a link: takes the last messages of a peer that is gone, reports the failure, releases
// what the link had. Connection path.
#pragma once

#include <cstdint>

#include "shm/joint_offers.h"
#include "shm/receive_lanes.h"
#include "shm/shm_links.h"
#include "transport/transport.h"

namespace lintel {

class LinkFailures {
 public:
  enum class Cause : uint8_t {
    gone,
    misbehaved,  // the peer may continue to write: its lane is not reused before it ends
  };

  LinkFailures(ShmLinks& links, ReceiveLanes& lanes, JointOffers& offers) noexcept
      : links_(links), lanes_(lanes), offers_(offers) {}

  // Once for each link; does nothing the next time.
  void fail(MessageSink& sink, ShmLink& link, Cause cause) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] uint64_t count() const noexcept { return count_; }

 private:
  ShmLinks& links_;
  ReceiveLanes& lanes_;
  JointOffers& offers_;
  uint64_t count_ = 0;
};

}  // namespace lintel

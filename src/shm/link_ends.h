// The end of a link, and checks for peers that have finished or died and for lanes without an
// owner. Connection path; a bounded number of system calls at a time.
#pragma once

#include <cstdint>

#include "shm/joint_offers.h"
#include "shm/receive_lanes.h"
#include "shm/shm_links.h"
#include "transport/transport.h"

namespace lintel {

// Takes the last messages of a peer that is gone, reports the failure, releases what the link had.
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

class LivenessChecks {
 public:
  LivenessChecks(const Segment& segment, ShmLinks& links, ReceiveLanes& lanes,
                 LinkFailures& failures) noexcept
      : segment_(segment), links_(links), lanes_(lanes), failures_(failures) {}

  // `watch`: links on which a thread waits. Of all others a few in turn.
  void check(MessageSink& sink, Link* const* watch, unsigned count) noexcept
      LINTEL_REQUIRES(polling);
  // Called after peers connected: checks a few others for each. So peers that died without closing
  // their segment hold only a share of the memory of the living ones, even if peers come and go
  // quickly.
  void check_after_new(MessageSink& sink) noexcept LINTEL_REQUIRES(polling);

 private:
  // System calls per check for links, and for lanes, on which no thread waits.
  static constexpr unsigned unwatched_checks = 4;
  static constexpr unsigned checks_per_new_link = 4;

  void check_link(MessageSink& sink, ShmLink& link) noexcept LINTEL_REQUIRES(polling);
  void check_finished(MessageSink& sink) noexcept LINTEL_REQUIRES(polling);
  void check_in_turn(MessageSink& sink, unsigned most) noexcept LINTEL_REQUIRES(polling);
  void reclaim_lanes() noexcept LINTEL_REQUIRES(polling);
  bool reclaim_lane(uint32_t lane) noexcept LINTEL_REQUIRES(polling);

  const Segment& segment_;
  ShmLinks& links_;
  ReceiveLanes& lanes_;
  LinkFailures& failures_;
  uint32_t made_seen_ = 0;       // links
  uint32_t next_reclaimed_ = 0;  // number of a lane
};

}  // namespace lintel

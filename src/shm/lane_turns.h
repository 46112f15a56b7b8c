// Senders of which there are more than lanes take turns. Connection path, within poll().
//
// Recalls lanes of this process's segment when peers find none free: those that carried no message
// for longest, a batch at a time. A peer returns a lane when it polls next. Peers that are stopped,
// or call nothing, do not. So after some milliseconds a batch counts as answered, and a batch of
// which most were not returned is followed by one twice as large.
#pragma once

#include <cstdint>
#include <vector>

#include "shm/receive_lanes.h"
#include "shm/segment.h"
#include "shm/shm_links.h"
#include "transport/transport.h"

namespace lintel {

class LaneRecalls {
 public:
  static constexpr uint64_t patience_ns = 4'000'000;

  LaneRecalls(const Segment& segment, ReceiveLanes& lanes);

  // After a look at claims and returns, and while is_pending().
  void look(uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);
  // A batch has not been answered: look again after patience_ns.
  [[nodiscard]] bool is_pending() const noexcept { return !batch_.empty(); }
  [[nodiscard]] uint64_t count() const noexcept { return count_; }

 private:
  static constexpr uint32_t smallest_batch = 2;
  static constexpr uint32_t lanes_per_batch = 16;  // share of the lanes in a batch

  void end_batch() noexcept LINTEL_REQUIRES(polling);
  void recall_least_recent(uint32_t most) noexcept LINTEL_REQUIRES(polling);
  bool recall(uint32_t lane) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] uint32_t not_returned() const noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] uint32_t usual_size() const noexcept;

  const Segment& segment_;
  ReceiveLanes& lanes_;
  uint32_t size_;                     // size of the next batch
  std::vector<uint32_t> batch_;       // lanes recalled last
  std::vector<uint32_t> candidates_;  // used within one call
  uint64_t batch_end_ns_ = 0;
  uint64_t count_ = 0;
};

// Returns lanes in segments of peers which their owners recall.
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

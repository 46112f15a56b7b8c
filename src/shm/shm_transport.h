// Transport between the processes of one node and one user through shared memory.
//
// Each process owns one segment (segment_layout.h). A process that sends to it claims a lane there.
// A link joins the lane that this process writes in the peer's segment with the lane that the peer
// writes in this one's. Either may come first or stay absent.
//
// Connecting and accepting share a lock (shm_links.h). Sending belongs to the holder of the core's
// send lock of the peer, receiving to the holder of its poll token.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "shm/claim_acceptor.h"
#include "shm/joint_help.h"
#include "shm/joint_offers.h"
#include "shm/lane_turns.h"
#include "shm/link_ends.h"
#include "shm/receive_lanes.h"
#include "shm/room_wait.h"
#include "shm/segment.h"
#include "shm/shm_links.h"
#include "transport/transport.h"

namespace lintel {

struct ShmSettings {
  uint32_t nid = 0;
  uint32_t pid = 0;           // PTL_PID_ANY: one that is free
  std::string job_key;        // processes with another key are not visible
  uint64_t memory_bytes = 0;  // maximum size of the segment of this process
  bool cma = true;            // use process_vm_readv and process_vm_writev
  uint32_t cma_threshold_bytes = 0;
  uint64_t incarnation = 0;  // incarnation of this process; 0: a new one
};

struct ShmCounters {
  uint64_t helped_chunks;  // chunks of this process's long copies that peers copied
  uint64_t links_refused;  // claims that were refused
  uint64_t malformed;      // malformed messages
  uint64_t peers_failed;
  uint64_t lanes_recalled;  // lanes recalled from peers, for other peers
};

class ShmTransport final : public Transport {
 public:
  // Set-up path. `reason` explains a failure.
  [[nodiscard]] static OpenStatus open(const ShmSettings& settings,
                                       std::unique_ptr<ShmTransport>& result, std::string& reason);

  [[nodiscard]] ProcessId id() const noexcept { return segment_->id(); }
  // The poller.
  [[nodiscard]] ShmCounters counters() const noexcept {
    return {offers_.helped_chunks(), claims_.refused(), lanes_.malformed(), failures_.count(),
            recalls_.count()};
  }
  [[nodiscard]] const Segment& segment() const noexcept { return *segment_; }

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] Link* connect(ProcessId peer, std::string* reason) override;
  [[nodiscard]] uint32_t process_of(Link& link) const noexcept override {
    const PeerSegment* const segment = static_cast<const ShmLink&>(link).segment.get();
    return segment == nullptr ? 0 : static_cast<uint32_t>(segment->identity().os_pid);
  }
  [[nodiscard]] uint64_t incarnation(Link& link) const noexcept override {
    return static_cast<const ShmLink&>(link).nonce;
  }
  [[nodiscard]] SendStatus send(Link& link, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept override;
  void publish(Link& link, uint64_t first_word, uint32_t payload_length) noexcept override;
  [[nodiscard]] unsigned acknowledge(Link& link, const uint32_t* cookies,
                                     unsigned count) noexcept override {
    return static_cast<ShmLink&>(link).sender.acknowledge(cookies, count);
  }
  [[nodiscard]] RemoteResult remote_access(Link& link, bool write, const Piece* local,
                                           unsigned local_count, const RemoteMemory* remote,
                                           unsigned remote_count, uint32_t token) noexcept override
      LINTEL_REQUIRES(polling) {
    return offers_.copy(static_cast<ShmLink&>(link),
                        write ? CopyDirection::to_peer : CopyDirection::to_here, local, local_count,
                        remote, remote_count, token);
  }
  unsigned poll(MessageSink& sink, unsigned budget) noexcept override LINTEL_REQUIRES(polling);
  [[nodiscard]] Doorbell* doorbell() noexcept override { return &segment_->header().doorbell; }
  [[nodiscard]] bool arm(bool blocked_senders) noexcept override LINTEL_REQUIRES(polling);
  void disarm() noexcept override { room_.disarm(); }
  [[nodiscard]] bool all_delivered() noexcept override { return offers_.pending() == nullptr; }
  [[nodiscard]] int64_t sleep_limit_ns() noexcept override;
  void wake_progress(Link& link) noexcept override;
  void check_peers(MessageSink& sink, Link* const* watch, unsigned count) noexcept override
      LINTEL_REQUIRES(polling);
  [[nodiscard]] std::vector<Statistic> statistics() const override {
    const ShmCounters now = counters();
    return {{"helped chunks", now.helped_chunks},
            {"links refused", now.links_refused},
            {"malformed", now.malformed},
            {"links failed", now.peers_failed},
            {"lanes recalled", now.lanes_recalled}};
  }
  void write_state(StateWriter& out) const noexcept override;
  [[nodiscard]] std::string device() const override;
  [[nodiscard]] std::string describe() const override;

 private:
  ShmTransport(std::unique_ptr<Segment> segment, const ShmSettings& settings);
  unsigned poll_all(MessageSink& sink, unsigned budget) noexcept LINTEL_REQUIRES(polling);
  void look_at_lanes(MessageSink& sink) noexcept LINTEL_REQUIRES(polling);

  std::unique_ptr<Segment> segment_;
  Capabilities capabilities_;
  ShmLinks links_;
  ReceiveLanes lanes_;
  JointOffers offers_;
  LinkFailures failures_;
  ClaimAcceptor claims_;
  LaneRecalls recalls_;
  LaneReturns returns_;
  JointHelp help_;
  RoomWait room_;
  LivenessChecks liveness_;
  bool senders_wait_ = false;  // senders waited when the poller last went to sleep
};

}  // namespace lintel

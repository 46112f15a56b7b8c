// Transport between the processes of one node and one user through shared memory.
//
// Every process owns one segment (segment_layout.h); whoever wants to send to it claims a lane
// there. A link joins the lane that we write in the peer's segment with the lane that it writes in
// ours; either may come first or stay absent. The steps are in files of their own: connect.cc,
// accept.cc, send.cc, poll.cc, sleep.cc, remote_access.cc, joint_copy.cc, liveness.cc.
//
// Who may touch what: connect() and accept share `mutex_`; sending belongs to the holder of the
// core's send lock of the peer, receiving to the holder of its poll token. Links live as long as
// the transport; what they map is exchanged for private zeroes when their peer dies.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "shm/segment.h"
#include "shm/shm_link.h"
#include "transport/transport.h"

namespace lintel {

struct ShmSettings {
  uint32_t nid = 0;
  uint32_t pid = 0;           // PTL_PID_ANY: one that is free
  std::string job_key;        // processes with another key are not visible
  uint64_t memory_bytes = 0;  // for the segment of this process
  bool cma = true;            // use process_vm_readv and process_vm_writev
  uint32_t cma_threshold_bytes = 0;
};

struct ShmCounters {
  uint64_t sent_messages = 0;
  uint64_t sent_bytes = 0;
  uint64_t received_messages = 0;
  uint64_t received_bytes = 0;
  uint64_t helped_chunks = 0;   // of our long copies, copied by the peer
  uint64_t queue_full = 0;      // sends that found no room
  uint64_t doorbell_rings = 0;  // peers woken because they waited for room
  uint64_t links_refused = 0;   // claims that proved false
  uint64_t malformed = 0;       // messages that no sane peer sends
  uint64_t peers_failed = 0;
};

class ShmTransport final : public Transport {
 public:
  // Set-up path. `reason` explains a failure.
  [[nodiscard]] static OpenStatus open(const ShmSettings& settings,
                                       std::unique_ptr<ShmTransport>& result, std::string& reason);
  ~ShmTransport() override;

  [[nodiscard]] ProcessId id() const noexcept { return segment_->id(); }
  [[nodiscard]] ShmCounters counters() const noexcept;  // any thread
  [[nodiscard]] const Segment& segment() const noexcept { return *segment_; }

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] Link* connect(ProcessId peer, std::string* reason) override;
  [[nodiscard]] SendStatus send(Link& link, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept override;
  [[nodiscard]] RemoteResult remote_read(Link& link, const Piece* local, unsigned local_count,
                                         const RemoteMemory* remote, unsigned remote_count,
                                         uint32_t token) noexcept override;
  [[nodiscard]] RemoteResult remote_write(Link& link, const Piece* local, unsigned local_count,
                                          const RemoteMemory* remote, unsigned remote_count,
                                          uint32_t token) noexcept override;
  unsigned poll(MessageSink& sink, unsigned budget) noexcept override;
  [[nodiscard]] Doorbell* doorbell() noexcept override { return &segment_->header().doorbell; }
  [[nodiscard]] bool arm(bool blocked_senders) noexcept override;
  void disarm() noexcept override;
  void check_peers(MessageSink& sink, Link* const* watch, unsigned count) noexcept override;
  [[nodiscard]] std::string describe() const override;

 private:
  // A lane of our segment, as seen by its consumer.
  enum class ReceiveState : uint8_t {
    unused,
    active,
    refused,  // not read any more; freed when whoever claimed it is dead
  };
  struct ReceiveLane {
    ReceiveState state = ReceiveState::unused;
    bool hot = false;
    ShmLink* link = nullptr;
    uint64_t last_message_poll = 0;
    LaneConsumer consumer;
  };

  static constexpr unsigned burst = 16;          // messages per call of the sink
  static constexpr unsigned max_hot_lanes = 16;  // looked at in every poll
  static constexpr unsigned cold_lanes_per_poll = 4;
  static constexpr uint64_t polls_until_cold = 2048;
  static constexpr uint64_t polls_between_rests = 8;

  ShmTransport(std::unique_ptr<Segment> segment, const ShmSettings& settings);

  // connect.cc
  static uint64_t key_of(ProcessId peer) noexcept { return uint64_t{peer.nid} << 32 | peer.pid; }
  ShmLink* find_link(ProcessId peer) const noexcept;  // mutex_ held
  ShmLink* add_link(std::unique_ptr<ShmLink> link);   // mutex_ held
  PeerSegment::ClaimStatus claim_send_lane(ShmLink& link, std::string& reason);
  SendStatus attach_and_send(ShmLink& link, const MessageHeader& header, const Piece* pieces,
                             unsigned count) noexcept;
  PeerSegment::Claimer claimer() const noexcept;

  // accept.cc
  void look_for_claims(MessageSink& sink) noexcept;
  void accept_claim(MessageSink& sink, uint32_t lane) noexcept;
  ShmLink* link_for_claim(ProcessId peer, uint64_t nonce, ShmLink*& replaced, std::string& reason);
  void stop_reading(uint32_t lane) noexcept;
  void free_lane(uint32_t lane) noexcept;
  void retire_lane(uint32_t lane) noexcept;

  // poll.cc
  unsigned poll_hot_lanes(MessageSink& sink, unsigned budget) noexcept;
  unsigned poll_cold_lanes(MessageSink& sink, unsigned budget) noexcept;
  void rest_hot_lanes() noexcept;
  unsigned drain(MessageSink& sink, ReceiveLane& lane, unsigned budget) noexcept;
  void make_hot(ReceiveLane& lane) noexcept;
  void make_cold(ReceiveLane& lane) noexcept;
  void wake_sleeping_producer(ReceiveLane& lane) noexcept;
  void malformed_message(MessageSink& sink, ReceiveLane& lane) noexcept;

  // sleep.cc
  template <typename Action>
  void for_each_blocked_link(Action&& action) noexcept;
  bool arm_for_room() noexcept;

  // liveness.cc
  enum class Cause : uint8_t { gone, misbehaved };
  void fail_link(MessageSink& sink, ShmLink& link, Cause cause) noexcept;
  void check_link(MessageSink& sink, ShmLink& link) noexcept;
  void check_unwatched_links(MessageSink& sink) noexcept;
  void reclaim_lanes() noexcept;
  bool reclaim_lane(uint32_t lane) noexcept;

  // remote_access.cc
  bool reach_memory(ShmLink& link) noexcept;
  template <bool reading>
  RemoteResult copy_remote(Link& link, const Piece* local, unsigned local_count,
                           const RemoteMemory* remote, unsigned remote_count) noexcept;
  template <bool reading>
  RemoteResult copy_alone(ShmLink& link, const Piece* local, unsigned local_count,
                          const RemoteMemory* remote, unsigned remote_count) noexcept;

  // joint_copy.cc
  static JointPlan plan_joint_copy(const Piece* local, unsigned local_count,
                                   const RemoteMemory* remote, unsigned remote_count) noexcept;
  template <bool reading>
  RemoteResult copy_jointly(ShmLink& link, const JointPlan& plan) noexcept;
  void offer_chunks(ShmLink& link, const JointPlan& plan, bool to_owner) noexcept;
  bool await_helper(const ShmLink& link, unsigned chunks) noexcept;
  unsigned help(MessageSink& sink) noexcept;
  bool copy_for_owner(MessageSink& sink, ShmLink& link, const JointChunk& chunk,
                      bool to_owner) noexcept;

  std::unique_ptr<Segment> segment_;
  uint32_t job_hash_;
  Capabilities capabilities_;

  // Connection path.
  std::mutex mutex_;
  std::vector<std::unique_ptr<ShmLink>> owned_links_;
  std::unordered_map<uint64_t, ShmLink*> current_links_;  // by address; never one that failed
  std::atomic<ShmLink*> all_links_{nullptr};              // grows at the head only

  // Poll token.
  uint32_t generation_seen_ = 0;
  uint64_t help_seen_ = 0;
  uint32_t joint_offers_ = 0;
  bool claims_postponed_ = false;  // some could not be looked into for want of resources
  bool armed_for_room_ = false;
  std::vector<ReceiveLane> lanes_;      // by number of the lane
  std::vector<uint32_t> active_lanes_;  // numbers, in no order
  ReceiveLane* hot_lanes_[max_hot_lanes] = {};
  unsigned hot_count_ = 0;
  unsigned next_hot_ = 0;            // where the next poll begins, when one ran out of budget
  uint32_t next_cold_ = 0;           // position in active_lanes_
  uint32_t next_reclaim_ = 0;        // number of a lane
  ShmLink* next_checked_ = nullptr;  // among all links
  uint64_t polls_ = 0;
  LocalCounter received_messages_;
  LocalCounter received_bytes_;
  LocalCounter helped_chunks_;
  LocalCounter doorbell_rings_;
  LocalCounter links_refused_;
  LocalCounter malformed_;
  LocalCounter peers_failed_;
};

}  // namespace lintel

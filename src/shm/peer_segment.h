// The segment of another process, as far as a sender needs it: opened, checked, mapped; lanes in it
// claimed and given up. Connection path.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "shm/segment_directory.h"
#include "shm/segment_layout.h"
#include "transport/message.h"

namespace lintel {

inline constexpr uint32_t no_lane = UINT32_MAX;

class PeerSegment {
 public:
  enum class Status : uint8_t {
    opened,
    absent,   // there is no such segment: no such process, or it has finished
    refused,  // there is one that we do not use; `reason` says why
    failed,   // the system is short of something (descriptors, memory): may work later
  };
  // Opens the segment of `peer` in the job, whether its owner lives or not. Thread-safe.
  [[nodiscard]] static Status open(ProcessId peer, uint32_t job_hash,
                                   std::unique_ptr<PeerSegment>& result, std::string& reason);
  ~PeerSegment();
  PeerSegment(const PeerSegment&) = delete;
  PeerSegment& operator=(const PeerSegment&) = delete;

  // Identity of the owner, as read when the segment was opened.
  [[nodiscard]] const SegmentIdentity& identity() const noexcept { return identity_; }
  [[nodiscard]] uint32_t uid() const noexcept { return uid_; }  // owner of the file
  [[nodiscard]] SegmentHeader& header() const noexcept { return *header_; }
  [[nodiscard]] Doorbell& doorbell() const noexcept { return header_->doorbell; }

  // True once the owner has finished in order.
  [[nodiscard]] bool owner_finished() const noexcept {
    return header_->closed.load(std::memory_order_acquire) != 0;
  }
  // False once the owner has finished or died. Makes system calls. If the file of a live owner was
  // removed (some systems do that when a user logs out), its memory is checked.
  [[nodiscard]] bool owner_alive() const;
  struct Claimer {
    ProcessId id;
    uint64_t nonce;
  };
  struct Claim {
    uint32_t lane = 0;
    LaneControl* control = nullptr;
    LaneGeometry geometry{};
    uint32_t data_bytes = 0;  // allocated bytes of the byte ring
  };
  enum class ClaimStatus : uint8_t {
    claimed,
    no_lane,  // no lane is free; one was requested from the owner
    no_room,  // there is no memory for a lane; `reason` says why
    gone,     // the segment was removed
  };
  // Takes a free lane for messages of this process to the owner and allocates its memory, of a
  // large byte ring only the beginning: most processes send few long messages to most of their
  // peers, and zeroed pages cost more time than everything else when a job starts.
  [[nodiscard]] ClaimStatus claim_lane(const Claimer& claimer, Claim& claim, std::string& reason);
  // Allocates all of a lane that this process has claimed. False: there is no memory for it.
  [[nodiscard]] bool allocate_rest(uint32_t lane) const noexcept;
  // Reports to the owner that this process has finished and writes nothing more to `lane`.
  void close_lane(uint32_t lane, uint64_t nonce) noexcept;

  // Whether the owner recalls `lane`, which this process has claimed with `nonce`.
  [[nodiscard]] bool is_recalled(uint32_t lane, uint64_t nonce) const noexcept {
    return is_in(lane, nonce, LaneState::recalled);
  }
  // Returns a recalled lane. Nothing more is written to it.
  void return_lane(uint32_t lane, uint64_t nonce) noexcept;
  // Whether the owner has not yet emptied a lane that was returned.
  [[nodiscard]] bool is_returned(uint32_t lane, uint64_t nonce) const noexcept {
    return is_in(lane, nonce, LaneState::returned);
  }
  // Notifies the owner that this process has recalled a lane through which the owner sends.
  void tell_recall() noexcept;
  // Returns a count that changes when a lane becomes free.
  [[nodiscard]] uint32_t lanes_freed() const noexcept {
    return header_->lanes_freed.load(std::memory_order_acquire);
  }

 private:
  PeerSegment() = default;
  [[nodiscard]] bool is_in(uint32_t lane, uint64_t nonce, LaneState state) const noexcept {
    return lane_table(header_)[lane].owner.load(std::memory_order_acquire) ==
           (nonce | static_cast<uint64_t>(state));
  }
  // Makes the owner look at its table.
  void announce_change() noexcept;
  void want_lane() noexcept;
  Status open_file(const std::string& path, const SegmentName& name, uint32_t job_hash,
                   std::string& reason);
  Status check_and_map(int fd, const SegmentName& name, uint32_t job_hash, std::string& reason);
  // claimed, gone or no_room; errno says why.
  ClaimStatus allocate(uint64_t offset_bytes, uint64_t length_bytes) const noexcept;
  ClaimStatus allocate_first(const SegmentGeometry::Place& place, uint64_t length_bytes,
                             std::string& reason) const;

  std::string path_;
  SegmentIdentity identity_{};
  SegmentGeometry geometry_{};
  SegmentHeader* header_ = nullptr;
  uint32_t uid_ = 0;
};

}  // namespace lintel

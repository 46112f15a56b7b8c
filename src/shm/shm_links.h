// The links of a shared-memory transport: found by the address of the peer, made by connecting or
// by accepting a claim, given a lane to send through. Connection path.
//
// Links are made under a lock. One that failed is used again for the next process with its address,
// of which there are few; the core may still look at it. The list of the others grows only at its
// head, and only the holder of the poll token removes from it, who walks it without the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shm/segment.h"
#include "shm/shm_link.h"
#include "transport/polling.h"
#include "util/lock.h"

namespace lintel {

class ShmLinks {
 public:
  // `reach_memory`: links may read and write the memory of their peers.
  ShmLinks(const Segment& own, uint32_t job_hash, bool reach_memory) noexcept
      : own_(own), job_hash_(job_hash), reach_memory_(reach_memory) {}
  // Reports to the peers that nothing more is sent, unless in a forked child.
  ~ShmLinks();
  ShmLinks(const ShmLinks&) = delete;
  ShmLinks& operator=(const ShmLinks&) = delete;

  // The link to a living process; nullptr: `reason` says why not. It has a lane to send through,
  // unless other senders have them all.
  [[nodiscard]] ShmLink* connect(ProcessId peer, std::string& reason);

  struct Acceptance {
    enum class Status : uint8_t {
      accepted,
      refused,    // the peer is not the process that it claims to be
      postponed,  // this process has too few descriptors or too little memory
    };
    Status status = Status::refused;
    ShmLink* link = nullptr;
    ShmLink* replaced = nullptr;  // link of an earlier process with that address
    std::string reason;
  };
  // The link of the process that claims to be `peer` with `nonce`.
  [[nodiscard]] Acceptance accept(ProcessId peer, uint64_t nonce) noexcept;

  // Before a message to a peer for which there is no lane: claims one. `sent`: it has one.
  [[nodiscard]] SendStatus attach(ShmLink& link) noexcept;
  // Returns the lane of the link, which the peer recalls. No thread sends.
  void return_lane(ShmLink& link) noexcept LINTEL_REQUIRES(polling);
  // Messages wait for a lane. Any thread.
  [[nodiscard]] bool any_waits() const noexcept {
    return waiting_.load(std::memory_order_relaxed) != 0;
  }
  // Gives back what a link has that failed. No thread sends by it any more.
  void release(ShmLink& link) noexcept LINTEL_REQUIRES(polling);

  // Links that were not released, the newest one first.
  [[nodiscard]] ShmLink* first() const noexcept { return listed_.load(std::memory_order_acquire); }
  // Return the links one after the other, even if links are released meanwhile. nullptr at the end;
  // then begin again.
  void begin_turn() noexcept LINTEL_REQUIRES(polling) {
    if (turn_ == nullptr) turn_ = first();
  }
  [[nodiscard]] ShmLink* next_in_turn() noexcept LINTEL_REQUIRES(polling) {
    return turn_ == nullptr ? nullptr : std::exchange(turn_, turn_->next);
  }
  // Links that were made so far, modulo 2^32.
  [[nodiscard]] uint32_t made() const noexcept { return made_.load(std::memory_order_relaxed); }

 private:
  // Links of an address.
  struct Place {
    ShmLink* current = nullptr;
    ShmLink* unused = nullptr;  // a chain through next
  };
  ShmLink* find(ProcessId peer) const noexcept LINTEL_REQUIRES(mutex_);  // returns no failed link
  ShmLink& make(ProcessId peer, uint64_t nonce, std::unique_ptr<PeerSegment> segment)
      LINTEL_REQUIRES(mutex_);
  ShmLink* add(ShmLink& link) noexcept LINTEL_REQUIRES(mutex_);
  void give_back(ShmLink& link) noexcept LINTEL_REQUIRES(mutex_);
  Acceptance look_up(ProcessId peer, uint64_t nonce);
  PeerSegment::ClaimStatus claim_lane(ShmLink& link, std::string& reason) const;
  void set_waiting(ShmLink& link, bool waits) noexcept;

  const Segment& own_;
  const uint32_t job_hash_;
  const bool reach_memory_;
  Mutex mutex_;
  std::vector<std::unique_ptr<ShmLink>> owned_ LINTEL_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, Place> places_ LINTEL_GUARDED_BY(mutex_);  // by address
  std::atomic<ShmLink*> listed_{nullptr};
  std::atomic<uint32_t> made_{0};
  ShmLink* turn_ LINTEL_GUARDED_BY(polling) = nullptr;
  std::atomic<uint32_t> waiting_{0};  // links
};

}  // namespace lintel

// The links of a shared-memory transport: found by the address of the peer, made by connecting or
// by accepting a claim, given a lane to send through. Connection path.
//
// Links are made under a lock and live as long as this object. The list of all grows only at its
// head, so it is walked without the lock.
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

namespace lintel {

class ShmLinks {
 public:
  // `reach_memory`: links may read and write the memory of their peers.
  ShmLinks(const Segment& own, uint32_t job_hash, bool reach_memory) noexcept
      : own_(own), job_hash_(job_hash), reach_memory_(reach_memory) {}
  // Tells the peers that nothing more is sent, unless in a forked child.
  ~ShmLinks();
  ShmLinks(const ShmLinks&) = delete;
  ShmLinks& operator=(const ShmLinks&) = delete;

  // The link to a living process; nullptr: `reason` says why not. It has a lane to send through,
  // unless other senders have them all.
  [[nodiscard]] ShmLink* connect(ProcessId peer, std::string& reason);

  struct Acceptance {
    enum class Status : uint8_t {
      accepted,
      refused,    // it is not the process that it claims to be
      postponed,  // this process is short of descriptors or memory
    };
    Status status = Status::refused;
    ShmLink* link = nullptr;
    ShmLink* replaced = nullptr;  // of an earlier process with that address
    std::string reason;
  };
  // The link of the process that claims to be `peer` with `nonce`.
  [[nodiscard]] Acceptance accept(ProcessId peer, uint64_t nonce) noexcept;

  // Before a message to a peer for which there is no lane: claims one. `sent`: it has one.
  [[nodiscard]] SendStatus attach(ShmLink& link) noexcept;
  // Returns the lane of the link, which the peer recalls. No thread sends; poll token held.
  void return_lane(ShmLink& link) noexcept;
  // Messages wait for a lane. Any thread.
  [[nodiscard]] bool any_waits() const noexcept {
    return waiting_.load(std::memory_order_relaxed) != 0;
  }
  // Gives back what a link has that failed. No thread sends by it any more. Poll token held.
  void release(ShmLink& link) noexcept;
  [[nodiscard]] ShmLink* first() const noexcept { return all_.load(std::memory_order_acquire); }

 private:
  ShmLink* find(ProcessId peer) const noexcept;  // mutex_ held, as for add(); never one that failed
  ShmLink* add(std::unique_ptr<ShmLink> link);
  std::unique_ptr<ShmLink> make(ProcessId peer, uint64_t nonce,
                                std::unique_ptr<PeerSegment> segment) const;
  Acceptance look_up(ProcessId peer, uint64_t nonce);
  PeerSegment::ClaimStatus claim_lane(ShmLink& link, std::string& reason) const;
  void set_waiting(ShmLink& link, bool waits) noexcept;

  const Segment& own_;
  const uint32_t job_hash_;
  const bool reach_memory_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ShmLink>> owned_;
  std::unordered_map<uint64_t, ShmLink*> current_;  // by address
  std::atomic<ShmLink*> all_{nullptr};
  std::atomic<uint32_t> waiting_{0};  // links
};

}  // namespace lintel

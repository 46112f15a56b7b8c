// One peer process of the shared-memory transport: the lane to it in its segment and the lane from
// it in ours.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "lane/lane.h"
#include "shm/peer_segment.h"
#include "transport/transport.h"

namespace lintel {

// Written by one thread at a time, read by any.
class LocalCounter {
 public:
  void add(uint64_t n) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct ShmLink final : Link {
  // Fixed from the start.
  uint64_t nonce = 0;                    // names the incarnation of the peer
  std::unique_ptr<PeerSegment> segment;  // null: the peer had finished before its claim was seen
  Doorbell* peer_doorbell = nullptr;
  ShmLink* next = nullptr;  // in the list of all links

  std::atomic<bool> failed{false};

  // Sending: under the core's send lock of this peer.
  LaneProducer producer;
  std::atomic<uint32_t> send_lane{no_lane};  // in the peer's segment; read when the link fails
  std::atomic<bool> send_blocked{false};  // the last send found the lane full; also read by arm()
  LocalCounter sent_messages;
  LocalCounter sent_bytes;
  LocalCounter queue_full;

  // Receiving and remote access: under the poll token.
  uint32_t receive_lane = no_lane;  // in our segment
  bool announced = false;           // on_new_link was called
  bool failure_reported = false;
  enum class Memory : uint8_t { untried, reachable, unreachable } memory = Memory::untried;
  uint64_t memory_checked_ns = 0;  // when the peer's nonce was last read from its memory
};

}  // namespace lintel

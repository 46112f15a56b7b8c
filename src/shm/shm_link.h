// One peer process of the shared-memory transport: the lane to it in its segment and the lane from
// it in ours.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "shm/lane_sender.h"
#include "shm/peer_memory.h"
#include "shm/peer_segment.h"
#include "transport/transport.h"

namespace lintel {

struct ShmLink final : Link {
  // Fixed while the link is listed.
  uint64_t nonce = 0;                    // names the incarnation of the peer
  std::unique_ptr<PeerSegment> segment;  // null: the peer had finished before its claim was seen

  // Used by ShmLinks: links of the list of links, or of a chain of unused ones.
  ShmLink* next = nullptr;
  ShmLink* previous = nullptr;

  std::atomic<bool> failed{false};
  LaneSender sender;
  LaneWait lane_wait;

  // Receiving and remote access: under the poll token.
  PeerMemory memory;
  uint32_t receive_lane = no_lane;  // number of the peer's lane in the own segment
  bool announced = false;           // on_new_link was called
  bool failure_reported = false;

  // Copies by this process alone.
  [[nodiscard]] RemoteResult copy(CopyDirection direction, const Piece* local, unsigned local_count,
                                  const RemoteMemory* remote, unsigned remote_count) noexcept
      LINTEL_REQUIRES(polling) {
    if (failed.load(std::memory_order_relaxed)) return {RemoteStatus::peer_failed, 0};
    const bool was_reached = memory.reached();
    RemoteResult result = memory.copy(direction, local, local_count, remote, remote_count);
    if (result.status == RemoteStatus::unsupported && was_reached && !segment->owner_alive())
      result.status = RemoteStatus::peer_failed;
    return result;
  }
  [[nodiscard]] Doorbell* peer_doorbell() const noexcept {
    return segment == nullptr ? nullptr : &segment->doorbell();
  }
};

}  // namespace lintel

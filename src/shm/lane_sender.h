// The sending end of a link: the lane in the peer's segment and the peer's doorbell. The holder of
// the core's send lock of the peer sends; the holder of the poll token asks whether room has
// appeared. Message path: no allocation, no locked instruction, a system call only to wake a peer
// that sleeps.
#pragma once

#include <atomic>
#include <cstdint>

#include "lane/lane.h"
#include "shm/peer_segment.h"
#include "transport/transport.h"
#include "util/doorbell.h"
#include "util/peer_order.h"

namespace lintel {

class LaneSender {
 public:
  // Connection path. False: no memory.
  [[nodiscard]] bool attach(const PeerSegment::Claim& claim, Doorbell& peer_doorbell) noexcept {
    if (!producer_.attach(claim.control, claim.geometry)) return false;
    doorbell_ = &peer_doorbell;
    lane_.store(claim.lane, std::memory_order_relaxed);
    return true;
  }
  // Nobody sends meanwhile; the poll token held.
  void detach() noexcept {
    producer_.detach();
    blocked_.store(false, std::memory_order_relaxed);
    lane_.store(no_lane, std::memory_order_relaxed);
  }
  [[nodiscard]] bool attached() const noexcept { return producer_.attached(); }
  // Number of the lane in the peer's segment, or no_lane. Any thread.
  [[nodiscard]] uint32_t lane() const noexcept { return lane_.load(std::memory_order_relaxed); }

  [[nodiscard]] SendStatus send(const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept {
    note_sending();
    const SendStatus status = producer_.push(header, pieces, count);
    if (status == SendStatus::sent) [[likely]] {
      doorbell_->ring_if_sleeping();
      if (blocked()) [[unlikely]]
        blocked_.store(false, std::memory_order_relaxed);
    } else if (status == SendStatus::queue_full) {
      blocked_.store(true, std::memory_order_release);  // the producer is set up
    }
    return status;
  }
  // A message came the other way. Any thread.
  void note_inbound() noexcept { producer_.note_inbound(); }

  // The last send found the lane full. Any thread; the following two only while it is so.
  [[nodiscard]] bool blocked() const noexcept { return blocked_.load(std::memory_order_acquire); }
  void ask_to_be_woken(bool wanted) noexcept {
    producer_.control().sleeps_for_room.store(wanted ? 1 : 0, std::memory_order_relaxed);
  }
  [[nodiscard]] bool room_appeared() const noexcept { return producer_.room_appeared(); }

 private:
  LaneProducer producer_;
  Doorbell* doorbell_ = nullptr;
  std::atomic<uint32_t> lane_{no_lane};
  std::atomic<bool> blocked_{false};
};

}  // namespace lintel

// The sending end of a link: the lane in the peer's segment and the peer's doorbell. The holder of
// the core's send lock of the peer sends; the holder of the poll token tests whether room has
// appeared. Message path: no allocation, no locked instruction, a system call only to wake a peer
// that sleeps, and once per lane to allocate the rest of it.
#pragma once

#include <atomic>
#include <cstdint>

#include "lane/lane_producer.h"
#include "shm/peer_segment.h"
#include "transport/transport.h"
#include "util/doorbell.h"
#include "util/peer_order.h"

namespace lintel {

// Decides when a link without a lane may try to claim one. Under the send lock of the peer.
//
// A message in another lane must not overtake messages in the lane that was returned before. So no
// lane is claimed until the owner has emptied that lane.
class LaneWait {
 public:
  // A sleeping sender without a lane tries again after this time.
  static constexpr uint64_t retry_ns = 1'000'000;

  void note_returned(uint32_t lane) noexcept { returned_ = lane; }

  // Whether to try to claim a lane now. A waiting sender tries again when a lane became free, and
  // every retry_ns, since the processes whose lanes were recalled may be stopped.
  [[nodiscard]] bool may_claim(const PeerSegment& segment, uint64_t nonce, uint64_t now) noexcept {
    if (returned_ != no_lane) {
      if (segment.is_returned(returned_, nonce)) return false;
      returned_ = no_lane;
    }
    const uint32_t freed = segment.lanes_freed();
    if (waits_ && freed == freed_seen_ && now < next_try_ns_) return false;
    freed_seen_ = freed;
    next_try_ns_ = now + retry_ns;
    return true;
  }
  // Sets whether the link waits for a lane. True: this is a change.
  [[nodiscard]] bool set_waiting(bool waits) noexcept {
    const bool changes = waits_ != waits;
    waits_ = waits;
    return changes;
  }

 private:
  uint32_t returned_ = no_lane;
  uint32_t freed_seen_ = 0;
  uint64_t next_try_ns_ = 0;
  bool waits_ = false;
};

class LaneSender {
 public:
  // Connection path. The segment must stay until detach(). False: no memory.
  [[nodiscard]] bool attach(const PeerSegment::Claim& claim, const PeerSegment& segment) noexcept {
    if (!producer_.attach(claim.control, claim.geometry, claim.data_bytes)) return false;
    segment_ = &segment;
    doorbell_ = &segment.doorbell();
    full_fence_ = doorbell_->wants_full_fence();
    lane_.store(claim.lane, std::memory_order_release);
    return true;
  }
  // No thread sends meanwhile.
  void detach() noexcept LINTEL_REQUIRES(polling) {
    producer_.detach();
    blocked_.store(false, std::memory_order_relaxed);
    lane_.store(no_lane, std::memory_order_relaxed);
  }
  [[nodiscard]] bool attached() const noexcept { return producer_.attached(); }
  // These two are for debuggers.
  [[nodiscard]] uint32_t cells() const noexcept { return producer_.cells(); }
  [[nodiscard]] uint32_t cells_in_flight() const noexcept { return producer_.cells_in_flight(); }
  // Number of the lane in the peer's segment, or no_lane. Any thread.
  [[nodiscard]] uint32_t lane() const noexcept { return lane_.load(std::memory_order_relaxed); }

  [[nodiscard, gnu::always_inline]] SendStatus send(const MessageHeader& header,
                                                    const Piece* pieces, unsigned count) noexcept {
    note_sending();
    const SendStatus status = producer_.push(header, pieces, count);
    if (status != SendStatus::sent) [[unlikely]]
      return send_after(status, header, pieces, count);
    doorbell_->ring_if_sleeping(full_fence_);
    if (blocked()) [[unlikely]]
      blocked_.store(false, std::memory_order_relaxed);
    return SendStatus::sent;
  }
  // See Link::next_cell. While the last send found the lane full, the next one tells RoomWait.
  [[nodiscard]] MessageCell* next_cell() const noexcept {
    return blocked() ? nullptr : producer_.next_cell();
  }
  // See Transport::publish(). Returns next_cell().
  [[gnu::always_inline]] MessageCell* publish(MessageCell& cell, uint64_t first_word,
                                              uint32_t length) noexcept {
    LINTEL_ASSERT(!blocked());
    note_sending();
    producer_.publish(cell, first_word, length);
    doorbell_->ring_if_sleeping(full_fence_);
    return producer_.next_cell();
  }
  // The acknowledgements to the lane, written by the poller: another thread may attach a lane
  // meanwhile. nullptr: there is no lane.
  [[nodiscard]] LaneAckWriter* acks() noexcept LINTEL_REQUIRES(polling) {
    return lane_.load(std::memory_order_acquire) == no_lane ? nullptr : &producer_.acks();
  }
  void publish_acks() noexcept LINTEL_REQUIRES(polling) {
    note_sending();
    producer_.acks().publish();
    doorbell_->ring_if_sleeping(full_fence_);
  }
  // See Transport::acknowledge().
  [[nodiscard]] unsigned acknowledge(const uint32_t* cookies, unsigned count) noexcept {
    if (!attached()) [[unlikely]]
      return 0;
    note_sending();
    const unsigned sent = producer_.acks().push(cookies, count);
    if (sent != 0) doorbell_->ring_if_sleeping(full_fence_);
    return sent;
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
  // The producer could not send, for this reason.
  [[gnu::noinline]] SendStatus send_after(SendStatus reason, const MessageHeader& header,
                                          const Piece* pieces, unsigned count) noexcept {
    if (producer_.wants_data()) {
      producer_.extend_data(segment_->allocate_rest(lane()));
      return send(header, pieces, count);
    }
    if (reason == SendStatus::queue_full)
      blocked_.store(true, std::memory_order_release);  // the producer is set up
    return reason;
  }

  LaneProducer producer_;
  const PeerSegment* segment_ = nullptr;
  Doorbell* doorbell_ = nullptr;
  bool full_fence_ = false;  // Doorbell::wants_full_fence()
  std::atomic<uint32_t> lane_{no_lane};
  std::atomic<bool> blocked_{false};
};

}  // namespace lintel

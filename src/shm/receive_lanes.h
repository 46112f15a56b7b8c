// The lanes of this process's segment, as their consumer. Lanes with recent traffic are hot and
// checked in every poll; of the others a few in turn. So the cost of a poll does not grow with the
// number of peers. Message path.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lane/lane_consumer.h"
#include "shm/segment.h"
#include "shm/shm_link.h"
#include "transport/transport.h"
#include "util/peer_order.h"

namespace lintel {

class ReceiveLanes {
 public:
  enum class State : uint8_t {
    unused,
    active,
    refused,  // the lane is not read any more; freed when the process that claimed it is dead
  };
  static constexpr unsigned burst = 16;  // messages per call of the sink
  struct Lane {
    State state = State::unused;
    bool hot = false;
    bool recalled = false;
    ShmLink* link = nullptr;
    uint64_t last_message_poll = 0;
    LaneConsumer consumer;
  };
  // Called for the link of a malformed message; it refuses or frees the lane.
  using Malformed = std::function<void(MessageSink&, ShmLink&)>;

  ReceiveLanes(const Segment& segment, Malformed on_malformed);

  [[nodiscard]] uint32_t count() const noexcept { return static_cast<uint32_t>(lanes_.size()); }
  [[nodiscard]] bool empty() const noexcept { return active_.empty(); }
  [[nodiscard]] State state(uint32_t lane) const noexcept {
    return lanes_[lane] == nullptr ? State::unused : lanes_[lane]->state;
  }
  // Returns nullptr unless the lane is active.
  [[nodiscard]] ShmLink* link(uint32_t lane) const noexcept {
    return lanes_[lane] == nullptr ? nullptr : lanes_[lane]->link;
  }

  // Connection path. Called before a lane is activated or refused for the first time. False: no
  // memory.
  [[nodiscard]] bool prepare(uint32_t lane) noexcept LINTEL_REQUIRES(polling);
  // Set the state of a lane: it is read for `link`, or not read, or free. The process that claimed
  // a lane that becomes free writes to it no more.
  void activate(uint32_t lane, ShmLink& link) noexcept LINTEL_REQUIRES(polling);
  void refuse(uint32_t lane) noexcept LINTEL_REQUIRES(polling);
  void free(uint32_t lane) noexcept LINTEL_REQUIRES(polling);
  // Notes that an active lane was recalled from the peer.
  void note_recalled(uint32_t lane) noexcept LINTEL_REQUIRES(polling) {
    lanes_[lane]->recalled = true;
  }
  [[nodiscard]] bool is_recalled(uint32_t lane) const noexcept LINTEL_REQUIRES(polling) {
    return lanes_[lane]->recalled;
  }
  // Numbers of the active lanes, in no order, and the poll in which a lane last had messages.
  [[nodiscard]] std::span<const uint32_t> active() const noexcept { return active_; }
  [[nodiscard]] uint64_t last_message_poll(uint32_t lane) const noexcept {
    return lanes_[lane]->last_message_poll;
  }
  // Delivers the messages in an active lane, but not all that a living peer continues to write.
  void drain(MessageSink& sink, uint32_t lane) noexcept LINTEL_REQUIRES(polling);

  // Begins a poll. False: there is more than one hot lane, or none, or it is time to look at the
  // other lanes.
  [[nodiscard]] bool begin_poll_of_one() noexcept LINTEL_REQUIRES(polling) {
    return ++polls_ % polls_between_rests != 0 && hot_count_ == 1;
  }
  [[nodiscard]] Lane& only_hot() const noexcept LINTEL_REQUIRES(polling) { return *hot_[0]; }
  // Delivers a burst, or the only acknowledgement, of a lane where there is something. Returns how
  // much.
  unsigned take_messages(MessageSink& sink, Lane& lane) noexcept LINTEL_REQUIRES(polling);
  unsigned take_acks(MessageSink& sink, Lane& lane) noexcept LINTEL_REQUIRES(polling);
  // Delivers at most about `budget` messages from hot lanes; returns their number. Begins after the
  // lane with which the previous call ended, so that all get their turn.
  unsigned poll_hot(MessageSink& sink, unsigned budget) noexcept LINTEL_REQUIRES(polling);
  // The same from some of the other lanes.
  unsigned poll_rest(MessageSink& sink, unsigned budget) noexcept LINTEL_REQUIRES(polling);
  // Before sleeping: false if there are messages. Producers learn how much room they have.
  [[nodiscard]] bool arm() noexcept LINTEL_REQUIRES(polling);

  // Number of malformed messages.
  [[nodiscard]] uint64_t malformed() const noexcept { return malformed_; }

 private:
  static constexpr unsigned max_hot = 16;  // lanes that every poll reads
  static constexpr unsigned cold_per_poll = 4;
  static constexpr uint64_t polls_until_cold = 2048;
  static constexpr uint64_t polls_between_rests = 16;

  unsigned poll_cold(MessageSink& sink, unsigned budget) noexcept LINTEL_REQUIRES(polling);
  void rest_hot() noexcept LINTEL_REQUIRES(polling);
  void note_delivery(Lane& lane) noexcept {
    note_received();
    lane.link->sender.note_inbound();
    lane.last_message_poll = polls_;
  }
  using Taken = LaneConsumer::Taken;
  Taken deliver_put(MessageSink& sink, Lane& lane) noexcept LINTEL_REQUIRES(polling);
  unsigned take_more(MessageSink& sink, Lane& lane, bool acknowledged) noexcept
      LINTEL_REQUIRES(polling);
  void end_delivery(Lane& lane, bool acknowledged) noexcept LINTEL_REQUIRES(polling);
  unsigned take_burst(MessageSink& sink, Lane& lane, unsigned budget) noexcept
      LINTEL_REQUIRES(polling);
  void make_hot(Lane& lane) noexcept;
  void make_cold(Lane& lane) noexcept;
  static void wake_sleeping_producer(Lane& lane) noexcept;
  void report_malformed(MessageSink& sink, Lane& lane) noexcept;
  void deactivate(uint32_t lane) noexcept LINTEL_REQUIRES(polling);

  const Segment& segment_;
  const Malformed on_malformed_;
  // Lanes by number. Most are never used and take no memory.
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<uint32_t> active_;  // numbers, in no order
  Lane* hot_[max_hot] = {};
  unsigned hot_count_ = 0;
  unsigned next_hot_ = 0;   // index at which the next poll begins, after one ran out of budget
  uint32_t next_cold_ = 0;  // position in active_
  uint64_t polls_ = 0;
  uint64_t malformed_ = 0;
};

}  // namespace lintel

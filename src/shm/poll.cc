// Receiving: bursts from the lanes of our segment. Message path.
//
// Lanes with recent traffic are hot and looked at in every poll; of the others a few in turn, so
// that the cost of a poll does not grow with the number of connected peers.
#include <algorithm>

#include "shm/shm_transport.h"
#include "util/log.h"
#include "util/peer_order.h"

namespace lintel {

unsigned ShmTransport::poll(MessageSink& sink, unsigned budget) noexcept {
  ++polls_;
  const SegmentHeader& header = segment_->header();
  unsigned total = 0;
  if (header.lane_generation.load(std::memory_order_acquire) != generation_seen_) [[unlikely]]
    look_for_claims(sink);
  if (header.help_wanted.load(std::memory_order_relaxed) != help_seen_) [[unlikely]]
    total = help(sink);
  total += poll_hot_lanes(sink, budget);
  if (polls_ % polls_between_rests == 0) rest_hot_lanes();
  if (active_lanes_.size() == hot_count_ || total >= budget) return total;
  return total + poll_cold_lanes(sink, budget - total);
}

// Begins after the lane with which the budget of the previous poll ended, so that all get their
// turn.
inline unsigned ShmTransport::poll_hot_lanes(MessageSink& sink, unsigned budget) noexcept {
  unsigned total = 0;
  for (unsigned left = hot_count_; left > 0 && total < budget; --left) {
    if (next_hot_ >= hot_count_) next_hot_ = 0;
    if (hot_count_ == 0) break;
    ReceiveLane& lane = *hot_lanes_[next_hot_];
    if (lane.consumer.ready()) {
      lane.last_message_poll = polls_;
      total += drain(sink, lane, budget - total);
    }
    if (lane.hot) ++next_hot_;  // otherwise another took its place
  }
  return total;
}

// Of lanes without messages: publishes room that the producer asks for, and makes a lane cold at last.
void ShmTransport::rest_hot_lanes() noexcept {
  for (unsigned i = hot_count_; i-- > 0;) {
    ReceiveLane& lane = *hot_lanes_[i];
    if (lane.consumer.ready()) continue;
    if (lane.consumer.release_on_request()) wake_sleeping_producer(lane);
    if (polls_ - lane.last_message_poll > polls_until_cold) make_cold(lane);
  }
}

unsigned ShmTransport::poll_cold_lanes(MessageSink& sink, unsigned budget) noexcept {
  unsigned total = 0;
  for (unsigned seen = 0; seen < cold_lanes_per_poll && total < budget; ++seen) {
    if (next_cold_ >= active_lanes_.size()) next_cold_ = 0;
    if (active_lanes_.empty()) break;
    ReceiveLane& lane = lanes_[active_lanes_[next_cold_++]];
    if (lane.hot || !lane.consumer.ready()) continue;
    make_hot(lane);
    total += drain(sink, lane, budget - total);
  }
  return total;
}

// One burst.
inline unsigned ShmTransport::drain(MessageSink& sink, ReceiveLane& lane,
                                    unsigned budget) noexcept {
  InboundMessage messages[burst];
  bool malformed = false;
  const unsigned count = lane.consumer.peek(messages, std::min(burst, budget), malformed);
  if (count != 0) {
    note_received();
    uint64_t bytes = 0;
    for (unsigned i = 0; i < count; ++i) bytes += messages[i].payload_length;
    lane.link->producer.note_inbound();
    sink.on_messages(*lane.link, messages, count);
    if (lane.consumer.release(count)) wake_sleeping_producer(lane);
    received_messages_.add(count);
    received_bytes_.add(bytes);
  }
  if (malformed) [[unlikely]]
    malformed_message(sink, lane);
  return count;
}

void ShmTransport::make_hot(ReceiveLane& lane) noexcept {
  lane.last_message_poll = polls_;
  if (lane.hot) return;
  if (hot_count_ == max_hot_lanes) {
    ReceiveLane** const coldest = std::min_element(
        hot_lanes_, hot_lanes_ + hot_count_,
        [](ReceiveLane* a, ReceiveLane* b) { return a->last_message_poll < b->last_message_poll; });
    make_cold(**coldest);
  }
  hot_lanes_[hot_count_++] = &lane;
  lane.hot = true;
}

// A lane that is looked at rarely must not keep room from its producer.
void ShmTransport::make_cold(ReceiveLane& lane) noexcept {
  lane.hot = false;
  ReceiveLane** const end = hot_lanes_ + hot_count_;
  *std::find(hot_lanes_, end, &lane) = end[-1];
  --hot_count_;
  if (lane.consumer.publish_room()) wake_sleeping_producer(lane);
}

void ShmTransport::wake_sleeping_producer(ReceiveLane& lane) noexcept {
  Doorbell* const doorbell = lane.link->peer_doorbell;
  if (doorbell == nullptr) return;
  doorbell->fences.light();
  if (!lane.consumer.producer_sleeps()) return;
  doorbell_rings_.add(1);
  doorbell->ring();
}

void ShmTransport::malformed_message(MessageSink& sink, ReceiveLane& lane) noexcept {
  malformed_.add(1);
  static std::atomic<bool> said{false};
  log_once(said, LogLevel::error,
           "shm: nid 0x%x pid %u sent a message that makes no sense; the connection is closed",
           lane.link->peer.nid, lane.link->peer.pid);
  fail_link(sink, *lane.link, Cause::misbehaved);
}

}  // namespace lintel

// Receiving bursts from hot and cold lanes. Message path.
#include "shm/receive_lanes.h"

#include <algorithm>
#include <new>
#include <utility>

#include "util/assert.h"
#include "util/log.h"
#include "util/node_identity.h"
#include "util/peer_order.h"

namespace lintel {

ReceiveLanes::ReceiveLanes(const Segment& segment, Malformed on_malformed)
    : segment_(segment),
      on_malformed_(std::move(on_malformed)),
      lanes_(segment.geometry().lane_count) {
  active_.reserve(lanes_.size());
}

[[gnu::always_inline]] inline LaneConsumer::Taken ReceiveLanes::deliver_put(MessageSink& sink,
                                                                            Lane& lane) noexcept {
  note_received();
  return lane.consumer.deliver_put(
      sink, *lane.link, [&lane]() LINTEL_REQUIRES(polling) { return lane.link->sender.acks(); });
}

// Delivers and acknowledges the puts at the front of the lane, up to another message. Straight code
// for a single one.
unsigned ReceiveLanes::take_messages(MessageSink& sink, Lane& lane) noexcept {
  const Taken taken = deliver_put(sink, lane);
  if (taken == Taken::none) [[unlikely]]
    return take_burst(sink, lane, burst);
  if (lane.consumer.message_waits()) [[unlikely]]
    return take_more(sink, lane, taken == Taken::acknowledged);
  end_delivery(lane, taken == Taken::acknowledged);
  return 1;
}

[[gnu::noinline]] unsigned ReceiveLanes::take_more(MessageSink& sink, Lane& lane,
                                                   bool acknowledged) noexcept {
  unsigned count = 1;
  while (count < burst && lane.consumer.message_waits()) {
    const Taken taken = deliver_put(sink, lane);
    if (taken == Taken::none) break;
    acknowledged |= taken == Taken::acknowledged;
    ++count;
  }
  end_delivery(lane, acknowledged);
  // A stream of messages must not hold up acknowledgements.
  return lane.consumer.acks().ready() ? count + take_acks(sink, lane) : count;
}

[[gnu::always_inline]] inline void ReceiveLanes::end_delivery(Lane& lane,
                                                              bool acknowledged) noexcept {
  if (acknowledged) lane.link->sender.publish_acks();
  note_delivery(lane);
  if (lane.consumer.release_taken()) [[unlikely]]
    wake_sleeping_producer(lane);
}

unsigned ReceiveLanes::take_acks(MessageSink& sink, Lane& lane) noexcept {
  uint32_t cookie;
  if (!lane.consumer.acks().take_single(cookie)) return take_burst(sink, lane, burst);
  note_delivery(lane);
  return sink.on_acknowledgement(*lane.link, cookie);
}

unsigned ReceiveLanes::poll_hot(MessageSink& sink, unsigned budget) noexcept {
  unsigned total = 0;
  for (unsigned left = hot_count_; left != 0 && total < budget; --left) {
    if (next_hot_ >= hot_count_) next_hot_ = 0;
    if (hot_count_ == 0) break;
    Lane& lane = *hot_[next_hot_];
    if (lane.consumer.acks().ready()) total += take_acks(sink, lane);
    if (lane.hot && lane.consumer.message_waits()) {
      const unsigned left = budget - std::min(total, budget - 1);
      total += left < burst ? take_burst(sink, lane, left) : take_messages(sink, lane);
    }
    if (lane.hot) ++next_hot_;  // otherwise another took its place
  }
  return total;
}

unsigned ReceiveLanes::poll_rest(MessageSink& sink, unsigned budget) noexcept {
  if (polls_ % polls_between_rests == 0) rest_hot();
  return active_.size() == hot_count_ ? 0 : poll_cold(sink, budget);
}

// Handles hot lanes without messages: publishes room that the producer requests, and makes a lane
// cold after a time.
void ReceiveLanes::rest_hot() noexcept {
  for (unsigned i = hot_count_; i-- > 0;) {
    Lane& lane = *hot_[i];
    if (lane.consumer.ready()) continue;
    if (lane.consumer.release_on_request()) wake_sleeping_producer(lane);
    if (polls_ - lane.last_message_poll > polls_until_cold) make_cold(lane);
  }
}

unsigned ReceiveLanes::poll_cold(MessageSink& sink, unsigned budget) noexcept {
  unsigned total = 0;
  const size_t looks = std::min<size_t>(cold_per_poll, active_.size());
  for (size_t seen = 0; seen < looks && total < budget; ++seen) {
    if (next_cold_ >= active_.size()) next_cold_ = 0;
    if (active_.empty()) break;
    Lane& lane = *lanes_[active_[next_cold_++]];
    if (lane.hot || !lane.consumer.ready()) continue;
    make_hot(lane);
    total += take_burst(sink, lane, budget - total);
  }
  return total;
}

unsigned ReceiveLanes::take_burst(MessageSink& sink, Lane& lane, unsigned budget) noexcept {
  bool malformed = false;
  uint32_t cookies[lane_ack_places];
  const unsigned acks = lane.consumer.acks().take(cookies, malformed);
  if (acks != 0) {
    note_delivery(lane);
    sink.on_acknowledgements(*lane.link, cookies, acks);
  }
  InboundMessage messages[burst];
  const unsigned count = lane.consumer.peek(messages, std::min(burst, budget), malformed);
  if (count != 0) {
    note_delivery(lane);
    sink.on_messages(*lane.link, messages, count);
    if (lane.consumer.release(count)) wake_sleeping_producer(lane);
  }
  if (malformed) [[unlikely]]
    report_malformed(sink, lane);
  return acks + count;
}

void ReceiveLanes::drain(MessageSink& sink, uint32_t number) noexcept {
  unsigned left = segment_.geometry().place(number).geometry.cells + lane_ack_places;
  while (left != 0 && state(number) == State::active) {
    const unsigned taken = take_burst(sink, *lanes_[number], left);
    if (taken == 0) return;
    left -= std::min(left, taken);
  }
}

bool ReceiveLanes::arm() noexcept {
  for (const uint32_t number : active_) {
    Lane& lane = *lanes_[number];
    if (lane.consumer.ready()) {
      make_hot(lane);
      return false;
    }
    if (lane.consumer.publish_room()) wake_sleeping_producer(lane);
  }
  return true;
}

void ReceiveLanes::make_hot(Lane& lane) noexcept {
  lane.last_message_poll = polls_;
  if (lane.hot) return;
  if (hot_count_ == max_hot) {
    Lane** const coldest = std::min_element(hot_, hot_ + hot_count_, [](Lane* a, Lane* b) {
      return a->last_message_poll < b->last_message_poll;
    });
    make_cold(**coldest);
  }
  hot_[hot_count_++] = &lane;
  lane.hot = true;
}

// A lane that is looked at rarely must not keep room from its producer.
void ReceiveLanes::make_cold(Lane& lane) noexcept {
  LINTEL_ASSERT(lane.hot && hot_count_ != 0 && hot_count_ <= max_hot);
  lane.hot = false;
  Lane** const end = hot_ + hot_count_;
  *std::find(hot_, end, &lane) = end[-1];
  --hot_count_;
  if (lane.consumer.publish_room()) wake_sleeping_producer(lane);
}

void ReceiveLanes::wake_sleeping_producer(Lane& lane) noexcept {
  Doorbell* const doorbell = lane.link->peer_doorbell();
  if (doorbell == nullptr) return;
  doorbell->order_before_look();
  if (lane.consumer.producer_sleeps()) doorbell->ring();
}

void ReceiveLanes::report_malformed(MessageSink& sink, Lane& lane) noexcept {
  ++malformed_;
  static std::atomic<bool> said{false};
  log_once(said, LogLevel::error, "shm: %s sent a malformed message; the connection is closed",
           ProcessText(lane.link->peer.nid, lane.link->peer.pid).c_str());
  on_malformed_(sink, *lane.link);
}

bool ReceiveLanes::prepare(uint32_t number) noexcept {
  if (lanes_[number] == nullptr) lanes_[number].reset(new (std::nothrow) Lane);
  return lanes_[number] != nullptr;
}

void ReceiveLanes::activate(uint32_t number, ShmLink& link) noexcept {
  Lane& lane = *lanes_[number];
  LINTEL_ASSERT(lane.state != State::active && !lane.hot);
  lane.state = State::active;
  lane.link = &link;
  lane.consumer.attach(segment_.lane(number), segment_.geometry().place(number).geometry);
  active_.push_back(number);
  make_hot(lane);
}

void ReceiveLanes::deactivate(uint32_t number) noexcept {
  Lane& lane = *lanes_[number];
  if (lane.hot) make_cold(lane);
  const auto active = std::find(active_.begin(), active_.end(), number);
  if (active != active_.end()) {
    *active = active_.back();
    active_.pop_back();
  }
  lane = Lane{};
}

void ReceiveLanes::refuse(uint32_t number) noexcept {
  deactivate(number);
  lanes_[number]->state = State::refused;
}

void ReceiveLanes::free(uint32_t number) noexcept {
  deactivate(number);
  segment_.clear_lane(number);
  segment_.free_entry(number);
}

}  // namespace lintel

// Delayed acknowledgements. Of frames that arrived: they wait for a frame to travel with, until the
// burst is over or a delay has passed. Of messages: they wait for the application's answer, to
// travel in one frame with it. Message path; the poller, except holds() of other messages.
//
// In a round trip an acknowledgement of its own delays the message by the time of a system call. If
// the application has answered quickly several times (ReplyPredictor), the acknowledgement of its
// next message waits for the answer. If no answer comes, the next polls send it. An application
// that computes instead of polling makes its peer wait for the progress thread; then more quick
// answers are needed before an acknowledgement waits again.
#pragma once

#include <utility>

#include "reliable/transmitter.h"
#include "util/lock.h"

namespace lintel {

class Acknowledger {
 public:
  Acknowledger(const ReliableContext& context, Transmitter& transmitter) noexcept
      : context_(context),
        transmitter_(transmitter),
        charge_(context.link.properties().receive_slot_bytes),
        at_once_bytes_(context.link.receive_capacity_bytes() / acks_per_window) {}

  // Numbered data came: a frame that is sent to the peer within the delay acknowledges it.
  void note_arrival(Connection& connection, uint32_t bytes, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock) {
    PendingAcknowledgement& pending = connection.pending;
    if (pending.arrived(charge_.of(bytes), now_ns, context_.settings.ack_delay_ns))
      context_.timers.set(connection, pending.deadline_ns());
    if (pending.bytes() >= at_once_bytes_) touched_.push(connection);
  }
  // Has this connection acknowledged at the end of this burst.
  void acknowledge_soon(Connection& connection) noexcept {
    connection.acknowledges_soon = true;
    touched_.push(connection);
  }
  // Called after a burst: many acknowledgements have been sent with answers by now.
  void settle(uint64_t now_ns) noexcept {
    if (!touched_.is_empty()) acknowledge_touched(now_ns);
  }

  // Called for each message that was queued. True: do not transmit it yet. Only one connection at a
  // time waits: an application with several peers has other messages to handle.
  [[nodiscard]] bool holds(Connection& connection, const MessageHeader& header,
                           uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock) {
    ReplyPredictor& replies = connection.replies;
    if (!is_acknowledgement(header)) {
      replies.sent(now_ns);
      return false;
    }
    replies.acknowledged(now_ns);
    if (!context_.settings.holds_acknowledgements || !replies.expects_reply() ||
        connection.send.window.queue().unsent_frames() > 1 ||
        (held_ != nullptr && held_ != &connection))
      return false;
    replies.hold();
    held_ = &connection;
    held_until_ns_ = now_ns + replies.hold_ns();
    return true;
  }
  void end_hold() noexcept {
    if (held_ != nullptr) release_held(context_.settings.clock());
  }
  void end_hold_if_due() noexcept {
    if (held_ == nullptr) return;
    const uint64_t now_ns = context_.settings.clock();
    if (now_ns >= held_until_ns_) release_held(now_ns);
  }

 private:
  // A sender whose window is full must get an acknowledgement in time.
  static constexpr uint64_t acks_per_window = 4;

  void acknowledge_touched(uint64_t now_ns) noexcept {
    while (!touched_.is_empty()) {
      Connection& connection = touched_.pop();
      const bool at_once = std::exchange(connection.acknowledges_soon, false);
      const LockGuard guard(connection.lock);
      if (connection.life.is_established() &&
          (at_once || connection.pending.bytes() >= at_once_bytes_))
        transmitter_.acknowledge(connection, now_ns);
    }
  }

  void release_held(uint64_t now_ns) noexcept {
    // After a longer time no thread was polling.
    constexpr uint64_t late_ns = 20'000;
    LINTEL_ASSERT(held_ != nullptr && held_until_ns_ != 0);
    Connection& connection = *std::exchange(held_, nullptr);
    const LockGuard guard(connection.lock);
    if (!connection.replies.holds()) return;
    connection.replies.hold_expired(now_ns > held_until_ns_ + late_ns);
    if (connection.life.is_established()) transmitter_.transmit(connection, now_ns);
  }

  const ReliableContext context_;
  Transmitter& transmitter_;
  const FrameCharge charge_;
  const uint64_t at_once_bytes_;
  ConnectionStack<&Connection::touched> touched_;
  Connection* held_ = nullptr;  // an acknowledgement to it is held
  uint64_t held_until_ns_ = 0;
};

}  // namespace lintel

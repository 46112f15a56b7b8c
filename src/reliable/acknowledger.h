// Delayed acknowledgements. Of frames that arrived: they wait for a frame to travel with, until the
// burst is over or a delay has passed. Of messages: they wait for the application's answer, to
// travel in one frame with it. Message path; the poller, except holds() of other messages.
//
// In a round trip an acknowledgement of its own delays the message by the time of a system call. If
// the application has answered quickly several times (ReplyHabit), the acknowledgement of its next
// message waits for the answer. If no answer comes, the next polls send it. An application that
// computes instead of polling makes its peer wait for the progress thread; then more quick answers
// are needed before an acknowledgement waits again.
#pragma once

#include "reliable/transmitter.h"

namespace lintel {

class Acknowledger {
 public:
  Acknowledger(const ReliableContext& context, Transmitter& transmitter,
               ConnectionTimers& timers) noexcept
      : settings_(context.settings),
        transmitter_(transmitter),
        timers_(timers),
        charge_(context.link.properties().receive_slot_bytes),
        at_once_bytes_(context.link.receive_capacity_bytes() / acks_per_window) {}

  // Numbered data came: a frame that is sent to the peer within the delay acknowledges it.
  void note_arrival(Connection& connection, uint32_t bytes, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock) {
    if (connection.pending.arrived(charge_.of(bytes), now_ns, settings_.ack_delay_ns))
      timers_.set(connection, connection.pending.deadline_ns());
    if (connection.pending.bytes() >= at_once_bytes_) touched_.push(connection);
  }
  // Has this connection acknowledged at the end of this burst.
  void acknowledge_soon(Connection& connection) noexcept {
    connection.acknowledge_at_once = true;
    touched_.push(connection);
  }
  // Called after a burst: many acknowledgements have been sent with answers by now.
  void settle(uint64_t now_ns) noexcept {
    if (!touched_.is_empty()) acknowledge_touched(now_ns);
  }

  // Called for each message that was queued. True: do not
  // transmit it yet. Only one connection at a time waits: an application with several
  // peers has other messages to handle.
  [[nodiscard]] bool holds(Connection& connection, const MessageHeader& header,
                           uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  void end_hold() noexcept {
    if (held_ != nullptr) release_held(settings_.clock());
  }
  void end_hold_if_due() noexcept {
    if (held_ == nullptr) return;
    const uint64_t now_ns = settings_.clock();
    if (now_ns >= held_until_ns_) release_held(now_ns);
  }

 private:
  // A sender whose window is full must get an acknowledgement in time.
  static constexpr uint64_t acks_per_window = 4;

  void acknowledge_touched(uint64_t now_ns) noexcept;
  void release_held(uint64_t now_ns) noexcept;

  const ReliableSettings& settings_;
  Transmitter& transmitter_;
  ConnectionTimers& timers_;
  const FrameCharge charge_;
  const uint64_t at_once_bytes_;
  ConnectionStack<&Connection::touched> touched_;
  Connection* held_ = nullptr;  // an acknowledgement to it is held back
  uint64_t held_until_ns_ = 0;
};

}  // namespace lintel

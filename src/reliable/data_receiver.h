// Numbered frames in order: takes the next one, with kept ones that follow it. Keeps those that are
// out of order, acknowledges duplicates. Message path; the poller, no lock held.
#pragma once

#include <utility>

#include "reliable/connection_closer.h"
#include "reliable/sender.h"
#include "reliable/transmitter.h"
#include "util/lock.h"

namespace lintel {

// Delayed acknowledgements of frames that arrived: they wait for a frame to travel with, until the
// burst is over or a delay has passed. Message path; the poller.
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

  const ReliableContext context_;
  Transmitter& transmitter_;
  const FrameCharge charge_;
  const uint64_t at_once_bytes_;
  ConnectionStack<&Connection::touched> touched_;
};

// Makes messages for the batch from the bodies of frames, which may contain anything. A message of
// one frame stays in the buffer of the link: the core copies its payload once, to its final place.
// Only eager messages longer than a frame are first put together in a buffer. Message path; the
// poller.
class MessageAssembler {
 public:
  enum class Taken : uint8_t { yes, no_room, malformed };

  MessageAssembler(const ReliableContext& context, MessageBatch& batch,
                   ConnectionCloser& closer) noexcept;

  // The body of the next numbered frame. `held`: its buffer, if that is not the link's; taken over
  // on yes.
  [[nodiscard]] Taken take(Connection& connection, uint8_t flags, const std::byte* body,
                           uint32_t length, FrameBuffer* held, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(polling);
  // The body of a frame that holds whole messages, numbered or not. False: malformed. The lock of
  // the connection may be held if the batch has room for most_bundled.
  [[nodiscard]] bool take_whole(Connection& connection, const std::byte* body, uint32_t length,
                                FrameBuffer* held = nullptr) noexcept LINTEL_REQUIRES(polling);
  // Whether a body is nothing but one part of a long message, and not its end.
  [[nodiscard]] bool is_part(uint8_t flags, const std::byte* body, uint32_t length,
                             MessageHeader& header) const noexcept;

 private:
  bool is_plausible(const MessageHeader& header) const noexcept;
  unsigned parse(const std::byte* body, uint32_t length,
                 MessageHeader (&headers)[most_bundled]) const noexcept;
  Taken take_fragment(Connection& connection, uint8_t flags, const std::byte* body, uint32_t length,
                      uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);
  bool begin_message(Connection& connection, uint32_t bytes, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(polling);

  const ReliableContext context_;
  const uint32_t longest_data_;
  // A message that has made no progress for so long may lose its buffer.
  const uint64_t stall_timeout_ns_;
  MessageBatch& batch_;
  ConnectionCloser& closer_;
};

class DataReceiver {
 public:
  DataReceiver(const ReliableContext& context, Sender& sender, Acknowledger& acknowledger,
               MessageBatch& batch, ConnectionCloser& closer, MessageAssembler& assembler) noexcept
      : context_(context),
        longest_frame_(std::max(context.link.mtu(), PacketLink::least_mtu)),
        sender_(sender),
        acknowledger_(acknowledger),
        batch_(batch),
        closer_(closer),
        assembler_(assembler) {}

  // A data frame whose check is right, on an established connection.
  void take(Connection& connection, const InboundFrame& frame, const FrameHeader& header,
            uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);
  // A part of one; what it acknowledges was taken.
  void take_part(Connection& connection, const InboundFrame& frame, const FrameHeader& header,
                 uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);
  // When to try again, after an expected frame found no room for its message and was kept:
  static constexpr uint64_t room_retry_ns = 1'000'000;
  // Takes the expected frame if it is kept. False: it is not.
  bool take_kept(Connection& connection, uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);

 private:
  using Taken = MessageAssembler::Taken;
  enum class Handled : uint8_t { yes, not_yet, malformed };

  Handled take_next(Connection& connection, const InboundFrame& frame, const FrameHeader& header,
                    uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);
  bool is_new(Connection& connection, const FrameHeader& header,
              ReceiveWindow::Place place) noexcept LINTEL_REQUIRES(polling);
  void take_rare(Connection& connection, const InboundFrame& frame, const FrameHeader& header,
                 uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);
  void keep(Connection& connection, const InboundFrame& frame, const FrameHeader& header,
            uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] uint64_t room_to_keep(const Connection& connection) const noexcept;
  Taken take_frame(Connection& connection, FrameBuffer* kept, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(polling);
  void go_on_after(Connection& connection, Taken taken, FrameBuffer* kept, uint32_t length,
                   uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);

  const ReliableContext context_;
  const uint32_t longest_frame_;  // of a peer
  Sender& sender_;
  Acknowledger& acknowledger_;
  MessageBatch& batch_;
  ConnectionCloser& closer_;
  MessageAssembler& assembler_;
};

}  // namespace lintel

// Numbered frames in order: takes the next one, with kept ones that follow it. Keeps those that are
// out of order, acknowledges duplicates. Message path; the poller, no lock held.
#pragma once

#include "reliable/acknowledger.h"
#include "reliable/connection_closer.h"
#include "reliable/sender.h"

namespace lintel {

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
  // take_whole() of several messages in one frame.
  bool take_bundle(Connection& connection, const std::byte* body, uint32_t length,
                   FrameBuffer* held) noexcept LINTEL_REQUIRES(polling);
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

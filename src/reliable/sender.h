// Messages to send on an established connection: cut into frames, which are transmitted at once, or
// later in a burst. Small messages share frames while the window is closed. Acknowledgements of the
// peer release the frames and open the window. Message path, any thread, except for catch_up_all().
#pragma once

#include <span>

#include "reliable/transmitter.h"

namespace lintel {

class Sender {
 public:
  Sender(const ReliableContext& context, Transmitter& transmitter) noexcept
      : context_(context), transmitter_(transmitter) {}

  [[nodiscard]] SendStatus send(Connection& connection, const MessageHeader& header,
                                const Piece* pieces, unsigned count) noexcept
      LINTEL_REQUIRES(connection.lock);

  // What a frame without numbered data acknowledges. False: it is malformed.
  [[nodiscard]] bool take_acknowledgement(Connection& connection, const InboundFrame& frame,
                                          const FrameHeader& header, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  // An acknowledgement that came with a message is kept until the next poll, so that the
  // application can first answer the message. It is handled at once if frames wait for the window.
  // False: malformed.
  [[nodiscard]] bool take_or_defer(Connection& connection, const FrameHeader& header,
                                   uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  // Takes what was deferred.
  void catch_up(Connection& connection) noexcept LINTEL_REQUIRES(connection.lock) {
    if (connection.send.has_deferred()) take_deferred(connection);
  }
  // The poller.
  void catch_up_all() noexcept {
    if (!deferring_.is_empty()) take_all_deferred();
  }

 private:
  struct Message {
    const MessageHeader& header;
    const Piece* pieces;
    unsigned count;
    uint32_t length;  // of the pieces
  };

  SendStatus send_datagram(Connection& connection, const Message& message) noexcept
      LINTEL_REQUIRES(connection.lock);
  SendStatus queue(Connection& connection, const Message& message) noexcept
      LINTEL_REQUIRES(connection.lock);
  SendStatus append(Connection& connection, const Message& message) noexcept
      LINTEL_REQUIRES(connection.lock);
  bool join_last(Connection& connection, const Message& message, SendStatus& status) noexcept
      LINTEL_REQUIRES(connection.lock);
  SendStatus cut(const Connection& connection, const Message& message, bool in_place,
                 FrameBuffer*& first) noexcept LINTEL_REQUIRES(connection.lock);
  bool acknowledge(Connection& connection, uint32_t acknowledged, uint8_t delay,
                   std::span<const uint64_t> selective, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  void take_deferred(Connection& connection) noexcept LINTEL_REQUIRES(connection.lock);
  void take_all_deferred() noexcept;

  const ReliableContext context_;
  Transmitter& transmitter_;
  ConnectionStack<&Connection::with_deferred> deferring_;
};

}  // namespace lintel

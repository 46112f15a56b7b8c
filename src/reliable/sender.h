// Messages to send on an established connection: cut into frames, which are transmitted at once,
// later in a burst, or with an answer. Small messages share frames while the window is closed, and
// behind a delayed acknowledgement. Acknowledgements of the peer release the frames and open the
// window. Message path, any thread.
#pragma once

#include <span>

#include "reliable/acknowledger.h"

namespace lintel {

class Sender {
 public:
  Sender(const ReliableContext& context, Transmitter& transmitter,
         Acknowledger& acknowledger) noexcept
      : context_(context), transmitter_(transmitter), acknowledger_(acknowledger) {}

  [[nodiscard]] SendStatus send(Connection& connection, const MessageHeader& header,
                                const Piece* pieces, unsigned count) noexcept
      LINTEL_REQUIRES(connection.lock);

  // Takes the acknowledgements of a frame without numbered data. False: it is malformed.
  [[nodiscard]] bool take_acknowledgement(Connection& connection, const InboundFrame& frame,
                                          const FrameHeader& header, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  // Takes the acknowledgements of a frame with numbered data. False: it is malformed.
  [[nodiscard]] bool take_acknowledgement(Connection& connection, const FrameHeader& header,
                                          uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock) {
    return acknowledge(connection, header.acknowledged, header.ack_delay, {&header.selective, 1},
                       now_ns);
  }

 private:
  void note_probe(Connection& connection, uint32_t number, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
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
  SendStatus fill_frame(const Connection& connection, const Message& message,
                        FrameBuffer*& frame) noexcept LINTEL_REQUIRES(connection.lock);
  SendStatus cut(const Connection& connection, const Message& message, bool in_place,
                 FrameBuffer*& first) noexcept LINTEL_REQUIRES(connection.lock);
  bool acknowledge(Connection& connection, uint32_t acknowledged, uint8_t delay,
                   std::span<const uint64_t> selective, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);

  const ReliableContext context_;
  Transmitter& transmitter_;
  Acknowledger& acknowledger_;
};

}  // namespace lintel

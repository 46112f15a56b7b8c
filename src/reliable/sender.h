// Messages to send on an established connection: cut into frames, which are transmitted at once,
// later in a burst, or with an answer. Small messages share frames while the window is closed, and
// behind a delayed acknowledgement. Message path, any thread.
#pragma once

#include "reliable/acknowledger.h"
#include "reliable/received_acknowledgements.h"

namespace lintel {

class Sender {
 public:
  // `sent`: where frames are kept until they are acknowledged.
  Sender(const ReliableContext& context, FramePool& sent, Transmitter& transmitter,
         ConnectionTimers& timers, ReceivedAcknowledgements& received,
         Acknowledger& acknowledger) noexcept
      : context_(context),
        sent_(sent),
        transmitter_(transmitter),
        timers_(timers),
        received_(received),
        acknowledger_(acknowledger) {}

  [[nodiscard]] SendStatus send(Connection& connection, const MessageHeader& header,
                                const Piece* pieces, unsigned count) noexcept
      LINTEL_REQUIRES(connection.lock);

 private:
  SendStatus send_datagram(Connection& connection, const MessageHeader& header, const Piece* pieces,
                           unsigned count, uint32_t length) noexcept
      LINTEL_REQUIRES(connection.lock);
  SendStatus queue(Connection& connection, const MessageHeader& header, const Piece* pieces,
                   unsigned count, uint32_t length) noexcept LINTEL_REQUIRES(connection.lock);
  SendStatus append(Connection& connection, const MessageHeader& header, const Piece* pieces,
                    unsigned count, uint32_t length) noexcept LINTEL_REQUIRES(connection.lock);
  bool join_last(Connection& connection, const MessageHeader& header, const Piece* pieces,
                 unsigned count, uint32_t length, SendStatus& status) noexcept
      LINTEL_REQUIRES(connection.lock);
  SendStatus cut(const Connection& connection, const MessageHeader& header, const Piece* pieces,
                 unsigned count, uint32_t length, bool in_place, FrameBuffer*& first) noexcept
      LINTEL_REQUIRES(connection.lock);

  const ReliableContext context_;
  FramePool& sent_;
  Transmitter& transmitter_;
  ConnectionTimers& timers_;
  ReceivedAcknowledgements& received_;
  Acknowledger& acknowledger_;
};

}  // namespace lintel

// Acknowledgements from peers: they release frames and open the window. Message path, except for
// catch_up_all().
#pragma once

#include <span>

#include "reliable/connection.h"
#include "reliable/transmitter.h"

namespace lintel {

class ReceivedAcknowledgements {
 public:
  ReceivedAcknowledgements(FramePool& sent, Transmitter& transmitter) noexcept
      : sent_(sent), transmitter_(transmitter) {}

  // The content of a frame without numbered data. False: it is malformed.
  [[nodiscard]] bool take(Connection& connection, const InboundFrame& frame,
                          const FrameHeader& header, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  // An acknowledgement that came with a message is kept until the next poll, so that the
  // application can first answer the message. It is handled at once if frames wait for the window.
  // False: malformed.
  [[nodiscard]] bool take_or_defer(Connection& connection, const FrameHeader& header,
                                   uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  // Takes what was deferred.
  void catch_up(Connection& connection) noexcept LINTEL_REQUIRES(connection.lock) {
    if (connection.deferred.pending) take_deferred(connection);
  }
  // The poller.
  void catch_up_all() noexcept {
    if (!deferring_.is_empty()) take_all_deferred();
  }

 private:
  bool acknowledge(Connection& connection, uint32_t acknowledged, uint8_t delay,
                   std::span<const uint64_t> selective, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  void take_deferred(Connection& connection) noexcept LINTEL_REQUIRES(connection.lock);
  void take_all_deferred() noexcept;

  FramePool& sent_;
  Transmitter& transmitter_;
  ConnectionStack<&Connection::with_deferred> deferring_;
};

}  // namespace lintel

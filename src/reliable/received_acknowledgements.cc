#include "reliable/received_acknowledgements.h"

#include <cstring>

#include "util/lock.h"

namespace lintel {

bool ReceivedAcknowledgements::acknowledge(Connection& connection, uint32_t acknowledged,
                                           uint8_t delay, std::span<const uint64_t> selective,
                                           uint64_t now_ns) noexcept {
  connection.deferred.pending = false;
  connection.silence.heard(now_ns);
  const SendWindow::Acknowledged result = connection.send.acknowledge(
      acknowledged, selective, delay * PendingAcknowledgement::age_unit_ns, now_ns);
  sent_.release_chain(result.released);
  if (connection.send.can_send() && !connection.held_back)
    transmitter_.transmit(connection, now_ns);
  else if (connection.send.in_flight_bytes() != 0)
    connection.silence.await(now_ns);
  return result.valid;
}

bool ReceivedAcknowledgements::take(Connection& connection, const InboundFrame& frame,
                                    const FrameHeader& header, uint64_t now_ns) noexcept {
  uint64_t words[1 + most_selective_words];
  words[0] = header.selective;
  size_t count = 1;
  if (header.type == FrameType::probe) connection.probe_of_peer = header.sequence;
  if (PartHeader part;
      header.type == FrameType::part && frame.length >= sizeof header + sizeof part) {
    std::memcpy(&part, frame.data + sizeof header, sizeof part);
    if (part.probe != 0) connection.probe_of_peer = part.probe;
  }
  if (header.type == FrameType::ack) {
    const size_t bytes = frame.length - sizeof header;
    if (bytes > most_selective_words * sizeof(uint64_t) || bytes % sizeof(uint64_t) != 0)
      return false;
    std::memcpy(words + 1, frame.data + sizeof header, bytes);
    count += bytes / sizeof(uint64_t);
    connection.send.take_answer(header.sequence);
  }
  return acknowledge(connection, header.acknowledged, header.ack_delay, {words, count}, now_ns);
}

bool ReceivedAcknowledgements::take_or_defer(Connection& connection, const FrameHeader& header,
                                             uint64_t now_ns) noexcept {
  if (header.selective != 0 || connection.send.can_send())
    return acknowledge(connection, header.acknowledged, header.ack_delay, {&header.selective, 1},
                       now_ns);
  if (!connection.send.was_sent_before(header.acknowledged)) return false;
  DeferredAcknowledgement& deferred = connection.deferred;
  if (deferred.pending && sequence_distance(header.acknowledged, deferred.acknowledged) < 0)
    return true;
  deferred = {true, header.ack_delay, header.acknowledged, now_ns};
  deferring_.push(connection);
  return true;
}

void ReceivedAcknowledgements::take_deferred(Connection& connection) noexcept {
  const DeferredAcknowledgement deferred = connection.deferred;
  constexpr uint64_t nothing_selective = 0;
  static_cast<void>(acknowledge(connection, deferred.acknowledged, deferred.delay,
                                {&nothing_selective, 1}, deferred.came_ns));
}

void ReceivedAcknowledgements::take_all_deferred() noexcept {
  while (!deferring_.is_empty()) {
    Connection& connection = deferring_.pop();
    const LockGuard guard(connection.lock);
    if (connection.is_established()) catch_up(connection);
  }
}

}  // namespace lintel

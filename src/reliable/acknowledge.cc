// When acknowledgements go out that found no frame to ride on, and when those that came are looked at.
// Message path.
#include <cstring>
#include <mutex>

#include "reliable/reliable_transport.h"

namespace lintel {

void ReliableTransport::touch(Connection& connection) noexcept {
  if (connection.touched) return;
  connection.touched = true;
  connection.next_touched = touched_;
  touched_ = &connection;
}

void ReliableTransport::acknowledge_soon(Connection& connection) noexcept {
  connection.ack_now = true;
  touch(connection);
}

// Numbered data came: what goes to the peer within a while acknowledges it.
void ReliableTransport::note_arrival(Connection& connection, uint32_t bytes,
                                     uint64_t now) noexcept {
  connection.newest_arrival_ns = now;
  connection.unacknowledged_bytes += bytes + SendWindow::frame_charge;
  if (connection.unacknowledged_bytes >= acknowledged_at_once_bytes_) touch(connection);
  if (connection.ack_deadline_ns != UINT64_MAX) return;
  connection.ack_deadline_ns = now + settings_.ack_delay_ns;
  list(connection, connection.ack_deadline_ns);
}

// After a burst: many acknowledgements have gone with answers by now.
void ReliableTransport::settle_acknowledgements(uint64_t now) noexcept {
  while (touched_ != nullptr) {
    Connection& connection = *touched_;
    touched_ = connection.next_touched;
    connection.touched = false;
    const bool at_once = connection.ack_now;
    connection.ack_now = false;
    const std::lock_guard guard(connection.lock);
    if (connection.state.load(std::memory_order_relaxed) != ConnectionState::established) continue;
    if (at_once || connection.unacknowledged_bytes >= acknowledged_at_once_bytes_)
      send_ack(connection, FrameType::ack, now);
  }
}

// What rides on a message is of no hurry unless something waits for the window to open. The message is:
// somebody waits for it, who will answer. So the acknowledgement is kept until the next poll, when
// the answer is on its way. False: it acknowledges what was never sent.
bool ReliableTransport::put_off_or_acknowledge(Connection& connection, const FrameHeader& header,
                                               uint64_t now) noexcept {
  if (header.selective != 0 || connection.send.can_send()) {
    connection.put_off = false;
    return acknowledge_sent(connection, header.acknowledged, header.ack_delay,
                            {&header.selective, 1}, now);
  }
  if (!connection.send.was_sent_before(header.acknowledged)) return false;
  if (connection.put_off &&
      sequence_distance(header.acknowledged, connection.put_off_acknowledged) < 0)
    return true;
  connection.put_off = true;
  connection.put_off_delay = header.ack_delay;
  connection.put_off_acknowledged = header.acknowledged;
  connection.put_off_ns = now;
  if (connection.on_put_off_list) return true;
  connection.on_put_off_list = true;
  connection.next_put_off = put_off_;
  put_off_ = &connection;
  return true;
}

void ReliableTransport::make_up_for(Connection& connection) noexcept {
  if (!connection.put_off) return;
  connection.put_off = false;
  constexpr uint64_t nothing_selective = 0;
  static_cast<void>(acknowledge_sent(connection, connection.put_off_acknowledged,
                                     connection.put_off_delay, {&nothing_selective, 1},
                                     connection.put_off_ns));
}

void ReliableTransport::make_up_for_all() noexcept {
  while (put_off_ != nullptr) {
    Connection& connection = *put_off_;
    put_off_ = connection.next_put_off;
    connection.on_put_off_list = false;
    const std::lock_guard guard(connection.lock);
    if (connection.state.load(std::memory_order_relaxed) == ConnectionState::established)
      make_up_for(connection);
  }
}

// Also for probes, which must be as long as the reset that may answer them, and for goodbyes.
void ReliableTransport::send_ack(Connection& connection, FrameType type, uint64_t now) noexcept {
  FrameHeader header{};
  fill_header(connection, header, type, now);
  uint64_t words[1 + most_selective_words] = {};
  size_t body_words = 0;
  if (type == FrameType::ack && connection.receive.has_early())
    body_words = connection.receive.selective_words(words) - 1;
  if (type == FrameType::probe) body_words = sizeof(ResetBody) / sizeof(uint64_t);
  const size_t body_bytes = body_words * sizeof(uint64_t);
  header.check = finish_check(body_check(connection.send_seed, words + 1, body_bytes), header);
  const Piece pieces[2] = {{reinterpret_cast<std::byte*>(&header), sizeof header},
                           {reinterpret_cast<std::byte*>(words + 1), body_bytes}};
  const OutboundFrame frame{&connection.route.address, pieces, body_words != 0 ? 2u : 1u};
  if (type != FrameType::ack) {
    static_cast<void>(link_->send(&frame, 1));
    return;
  }
  if (link_->send(&frame, 1) == 1) {
    note_acknowledged(connection);
    counts_.acks_sent.add();
  } else {
    connection.ack_deadline_ns = now + settings_.ack_delay_ns;
    list(connection, connection.ack_deadline_ns);
  }
}

}  // namespace lintel

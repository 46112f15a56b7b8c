// When acknowledgements go out that found no frame to ride on. Message path.
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

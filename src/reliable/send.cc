// Sending messages: cutting them into frames, keeping the frames, transmitting what the windows allow.
// Message path.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "reliable/piece_reader.h"
#include "reliable/reliable_transport.h"
#include "reliable/write_header.h"
#include "util/peer_order.h"

namespace lintel {

namespace {

// What may wait here beyond the window: enough to go on while acknowledgements travel.
constexpr uint64_t queue_beyond_window_bytes = 128 * 1024;
constexpr uint32_t most_queued_frames = 2048;
// So many frames without an acknowledgement: perhaps there is one that was put off.
constexpr uint32_t looked_at_again_frames = 8;
// Bulk data is collected up to this before it is sent: one system call, one segmented burst.
constexpr uint64_t collected_bytes = 60 * 1024;
constexpr unsigned collected_frames = PacketLink::largest_burst;
// When the link takes no more; its queue drains by itself.
constexpr uint64_t link_full_retry_ns = 50'000;

// A shorter payload is copied at once more cheaply than it is looked after.
constexpr uint64_t in_place_min_bytes = 2048;

uint64_t total_length(const Piece* pieces, unsigned count) noexcept {
  uint64_t length = 0;
  for (unsigned i = 0; i < count; ++i) length += pieces[i].length;
  return length;
}

}  // namespace

SendStatus ReliableTransport::send(Link& link, const MessageHeader& header, const Piece* pieces,
                                   unsigned count) noexcept {
  auto& connection = static_cast<Connection&>(link);
  const uint64_t length = total_length(pieces, count);
  note_sending();
  const std::lock_guard guard(connection.lock);
  switch (connection.state.load(std::memory_order_relaxed)) {
    case ConnectionState::established:
      break;
    case ConnectionState::idle:
      start_opening(connection, settings_.clock());
      return SendStatus::connecting;
    case ConnectionState::opening:
      return SendStatus::connecting;
    case ConnectionState::failed:
      return SendStatus::peer_failed;
  }
  if (length > std::max<uint64_t>(max_eager_bytes, connection.max_data_bytes))
    return SendStatus::inaccessible;
  if ((header.flags & flag_unreliable) != 0 && header.kind == MessageKind::put &&
      message_frame_overhead + length <= connection.frame_bytes && !connection.send.can_send())
    return send_datagram(connection, header, pieces, count, static_cast<uint32_t>(length));

  const bool collects = header.kind == MessageKind::data && (header.flags & flag_last) == 0;
  const SendStatus status =
      queue_message(connection, header, pieces, count, static_cast<uint32_t>(length));
  const bool full_burst = connection.send.unsent_frames() >= collected_frames ||
                          connection.send.unsent_bytes() >= collected_bytes;
  if (collects && !full_burst && status == SendStatus::sent) return status;
  const uint64_t now = settings_.clock();
  const bool queued = status == SendStatus::sent;
  if (queued && holds_back(connection, header, now)) return status;
  transmit(connection, now);
  if (queued && is_acknowledgement(header))
    connection.habit.acknowledgement_went(settings_.clock());
  return status;
}

uint32_t ReliableTransport::payload_mark(Link& link) noexcept {
  auto& connection = static_cast<Connection&>(link);
  const std::lock_guard guard(connection.lock);
  return connection.send.next_sequence();
}

bool ReliableTransport::payloads_released(Link& link, uint32_t mark) noexcept {
  auto& connection = static_cast<Connection&>(link);
  const std::lock_guard guard(connection.lock);
  return connection.send.has_arrived_before(mark);
}

// All or nothing: a message that finds room for some of its frames only leaves none.
SendStatus ReliableTransport::queue_message(Connection& connection, const MessageHeader& header,
                                            const Piece* pieces, unsigned count,
                                            uint32_t length) noexcept {
  SendWindow& window = connection.send;
  if (window.queued_frames() >= looked_at_again_frames) make_up_for(connection);
  if (!window.empty() &&
      (window.queued_frames() >= most_queued_frames ||
       window.queued_bytes() + length > window.window_bytes() + queue_beyond_window_bytes))
    return SendStatus::queue_full;

  if (const auto joined = join_last_frame(connection, header, pieces, count, length))
    return *joined;

  const bool in_place =
      sends_from_anywhere_ && count == 1 && length >= in_place_min_bytes && payload_stays(header);
  PieceReader payload(pieces, count);
  FrameBuffer* first = nullptr;
  FrameBuffer** last = &first;
  uint32_t left = length;
  SendStatus status = SendStatus::sent;
  do {
    const uint32_t overhead = first == nullptr ? message_frame_overhead : sizeof(FrameHeader);
    const uint32_t part = std::min(left, connection.frame_bytes - overhead);
    FrameBuffer* const frame = send_pool_.acquire(in_place ? overhead : overhead + part);
    if (frame == nullptr) {
      status = SendStatus::queue_full;
      break;
    }
    if (first == nullptr) {
      frame->flags = frame_first;
      write_header(frame->data() + sizeof(FrameHeader), header, length);
    }
    *last = frame;
    last = &frame->next;
    if (in_place) {
      frame->payload = pieces->base + (length - left);
      frame->length += part;
    } else if (part != 0 && !payload.read(frame->data() + overhead, part)) {
      status = SendStatus::inaccessible;
      break;
    }
    if (!check_body(connection, *frame)) {
      status = SendStatus::inaccessible;
      break;
    }
    left -= part;
    if (left == 0) frame->flags |= frame_last;
  } while (left != 0);
  // Whoever sent memory that is in use only until it has arrived waits for that; what ends such a
  // sequence of messages asks for an answer at once.
  const bool awaited = in_place && (header.modes & data_stays) != 0;
  if (connection.release_awaited && !awaited && status == SendStatus::sent)
    first->flags |= frame_wants_ack;
  if (status != SendStatus::sent) {
    *last = nullptr;
    send_pool_.release_chain(first);
    // With nothing of this peer under way, only other peers' acknowledgements make room: look again.
    if (status == SendStatus::queue_full) list(connection, settings_.clock() + link_full_retry_ns);
    return status;
  }
  connection.release_awaited = awaited;
  first->messages = (first->flags & frame_last) != 0 ? 1 : 0;
  while (first != nullptr) {
    FrameBuffer* const next = first->next;
    window.append(first);
    first = next;
  }
  return SendStatus::sent;
}

// The check of a frame, as far as it does not depend on the header. False: its payload is not there.
bool ReliableTransport::check_body(const Connection& connection, FrameBuffer& frame) noexcept {
  frame.body_check = body_check(connection.send_seed, frame.data() + sizeof(FrameHeader),
                                frame.held_bytes - sizeof(FrameHeader));
  return frame.payload == nullptr ||
         guarded_body_check(frame.body_check, frame.payload, frame.length - frame.held_bytes,
                            frame.body_check);
}

// A payload that lies with the application may have changed since the frame was sent first, though it
// should not; a frame whose check never fits again would be repeated for ever. If it has gone away, no
// operation waits for it any more, but the frames behind it do.
void ReliableTransport::check_again(const Connection& connection, FrameBuffer& frame) noexcept {
  if (check_body(connection, frame)) return;
  static const std::byte nothing[PacketLink::largest_mtu]{};
  frame.payload = nothing;
  static_cast<void>(check_body(connection, frame));
}

// One frame and no state: whatever happens to it, nobody will know.
SendStatus ReliableTransport::send_datagram(Connection& connection, const MessageHeader& header,
                                            const Piece* pieces, unsigned count,
                                            uint32_t length) noexcept {
  FrameBuffer* const frame = send_pool_.acquire(message_frame_overhead + length);
  if (frame == nullptr) return SendStatus::sent;  // lost
  write_header(frame->data() + sizeof(FrameHeader), header, length);
  PieceReader payload(pieces, count);
  if (!payload.read(frame->data() + message_frame_overhead, length)) {
    send_pool_.release(frame);
    return SendStatus::inaccessible;
  }
  FrameHeader frame_header{};
  fill_header(connection, frame_header, FrameType::datagram, settings_.clock());
  frame_header.check =
      finish_check(body_check(connection.send_seed, frame->data() + sizeof(FrameHeader),
                              frame->length - sizeof(FrameHeader)),
                   frame_header);
  std::memcpy(frame->data(), &frame_header, sizeof frame_header);
  const Piece piece{frame->data(), frame->length};
  const OutboundFrame outbound{&connection.route.address, &piece, 1};
  if (link_->send(&outbound, 1) == 1) note_acknowledged(connection);
  counts_.datagrams_sent.add();
  send_pool_.release(frame);
  return SendStatus::sent;
}

void ReliableTransport::fill_header(Connection& connection, FrameHeader& header, FrameType type,
                                    uint64_t now) const noexcept {
  header.version = frame_version;
  header.type = type;
  const uint64_t delay_ns = now > connection.newest_arrival_ns && connection.newest_arrival_ns != 0
                                ? now - connection.newest_arrival_ns
                                : 0;
  header.ack_delay = static_cast<uint8_t>(std::min<uint64_t>(delay_ns / 4096, 255));
  header.connection = connection.peer_number;
  header.acknowledged = connection.receive.expected();
  header.selective = connection.receive.has_early() ? connection.receive.selective() : 0;
}

void ReliableTransport::note_acknowledged(Connection& connection) noexcept {
  connection.unacknowledged_bytes = 0;
  connection.ack_deadline_ns = UINT64_MAX;
}

void ReliableTransport::transmit(Connection& connection, uint64_t now) noexcept {
  FrameBuffer* frames[send_burst];
  Piece pieces[send_burst][2];
  OutboundFrame outbound[send_burst];
  for (;;) {
    bool exhausted = false;
    const unsigned count = connection.send.collect(frames, send_burst, exhausted);
    if (count == 0) break;
    FrameHeader header{};
    fill_header(connection, header, FrameType::data, now);
    for (unsigned i = 0; i < count; ++i) {
      FrameBuffer& frame = *frames[i];
      if (frame.payload != nullptr && frame.transmission != 0) check_again(connection, frame);
      header.sequence = frame.sequence;
      header.flags = frame.flags;
      if (exhausted && i + 1 == count) header.flags |= frame_wants_ack;
      header.check = finish_check(frame.body_check, header);
      std::memcpy(frame.data(), &header, sizeof header);
      pieces[i][0] = {frame.data(), frame.held_bytes};
      pieces[i][1] = {const_cast<std::byte*>(frame.payload), frame.length - frame.held_bytes};
      outbound[i] = {&connection.route.address, pieces[i], frame.payload == nullptr ? 1u : 2u};
    }
    const unsigned taken = link_->send(outbound, count);
    uint64_t repeated = 0;
    for (unsigned i = 0; i < taken; ++i) repeated += frames[i]->transmission != 0;
    connection.send.mark_sent(frames, taken, now);
    if (taken != 0) note_acknowledged(connection);
    connection.data_frames_sent.store(
        connection.data_frames_sent.load(std::memory_order_relaxed) + taken,
        std::memory_order_relaxed);
    if (repeated != 0) counts_.retransmissions.add(repeated);
    if (taken < count) {
      connection.retry_ns = now + link_full_retry_ns;
      list(connection, connection.retry_ns);
      break;
    }
    if (exhausted || count < send_burst) break;
  }
  if (connection.send.in_flight_bytes() == 0) return;
  if (connection.waiting_since_ns == 0) connection.waiting_since_ns = now;
  list(connection, connection.send.deadline_ns());
}

}  // namespace lintel

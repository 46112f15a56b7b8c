// Receiving: bursts of frames, each checked before anything in it is believed. Message path.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "reliable/reliable_transport.h"

namespace lintel {

unsigned ReliableTransport::poll(MessageSink& sink, unsigned budget) noexcept {
  if (held_ != nullptr) end_hold_if_due(settings_.clock());
  if (quiet_) {
    if (!disturbed_.load(std::memory_order_acquire)) [[likely]]
      return 0;
    leave_quiet(settings_.clock());
  }
  if (put_off_ != nullptr) make_up_for_all();
  InboundFrame frames[receive_burst];
  const unsigned count = link_->receive(frames, std::min(budget, receive_burst));
  const uint64_t now = settings_.clock();
  handed_up_ = 0;
  if (count != 0) {
    last_frame_ns_ = now;
    for (unsigned i = 0; i < count; ++i) handle_frame(sink, frames[i], now);
    deliver_batch(sink);
    if (touched_ != nullptr) settle_acknowledgements(now);
  }
  if (now >= earliest_timer_ns_.load(std::memory_order_relaxed)) run_timers(sink, now);
  if (count == 0 && elapsed_ns(last_frame_ns_, now) > settings_.quiet_after_ns) [[unlikely]]
    go_quiet(now);
  // Frames without messages may have made room for what is queued.
  return std::max(handed_up_, count != 0 ? 1u : 0u);
}

void ReliableTransport::handle_frame(MessageSink& sink, const InboundFrame& frame,
                                     uint64_t now) noexcept {
  FrameHeader header;
  if (frame.length < sizeof header) {
    counts_.malformed.add();
    return;
  }
  std::memcpy(&header, frame.data, sizeof header);
  if (header.version != frame_version || (header.flags & ~frame_flags_known) != 0) {
    counts_.malformed.add();
    return;
  }
  switch (header.type) {
    case FrameType::data:
    case FrameType::datagram:
    case FrameType::ack:
    case FrameType::probe:
    case FrameType::goodbye:
      handle_connection_frame(sink, frame, header, now);
      return;
    case FrameType::hello:
    case FrameType::challenge:
    case FrameType::connect:
    case FrameType::accept:
    case FrameType::refuse:
      handle_handshake(sink, frame, header, now);
      return;
    case FrameType::reset:
      handle_reset(sink, frame);
      return;
  }
  counts_.malformed.add();
}

void ReliableTransport::handle_connection_frame(MessageSink& sink, const InboundFrame& frame,
                                                const FrameHeader& header, uint64_t now) noexcept {
  Connection* const connection = by_number(header.connection);
  const ConnectionState state = connection == nullptr
                                    ? ConnectionState::idle
                                    : connection->state.load(std::memory_order_acquire);
  if (state != ConnectionState::established || connection->number != header.connection) {
    counts_.strangers.add();
    // While it opens, data may overtake what establishes it; they are repeated.
    const bool opens = state == ConnectionState::opening;
    const bool expects_answer = header.type == FrameType::data || header.type == FrameType::probe;
    if (!opens && expects_answer) send_reset(frame, header);
    return;
  }
  if (!(*frame.from == connection->route.address)) {
    counts_.strangers.add();
    return;
  }
  if (!check_frame(connection->receive_seed, frame.data, frame.length)) {
    counts_.damaged.add();
    return;
  }
  if (header.type == FrameType::data) {
    const Handled handled = handle_next(sink, *connection, frame, header, now);
    if (handled == Handled::yes) [[likely]]
      return;
    if (handled == Handled::malformed) counts_.malformed.add();
    if (handled == Handled::not_yet) handle_data(sink, *connection, frame, header, now);
    return;
  }
  if (!handle_acknowledgement(*connection, frame, header, now)) {
    counts_.malformed.add();
    return;
  }
  switch (header.type) {
    case FrameType::datagram:
      if (take_messages(sink, *connection, frame.data + sizeof header, frame.length - sizeof header,
                        nullptr) != Taken::yes)
        counts_.malformed.add();
      else
        counts_.datagrams_received.add();
      break;
    case FrameType::probe:
      acknowledge_soon(*connection);
      break;
    case FrameType::goodbye:
      deliver_batch(sink);
      fail(sink, *connection, "it has closed its interface");
      break;
    default:
      break;
  }
}

// What a frame says about ours. False: it acknowledges what was never sent.
bool ReliableTransport::acknowledge_sent(Connection& connection, uint32_t acknowledged,
                                         uint8_t delay, std::span<const uint64_t> selective,
                                         uint64_t now) noexcept {
  connection.last_heard_ns = now;
  connection.waiting_since_ns = 0;
  connection.unreachable_hints = 0;
  const SendWindow::Acknowledged result =
      connection.send.acknowledge(acknowledged, selective, uint64_t{delay} * 4096, now);
  send_pool_.release_chain(result.released);
  if (connection.send.can_send() && !connection.held_back)
    transmit(connection, now);
  else if (connection.send.in_flight_bytes() != 0)
    connection.waiting_since_ns = now;
  return result.valid;
}

bool ReliableTransport::handle_acknowledgement(Connection& connection, const InboundFrame& frame,
                                               const FrameHeader& header, uint64_t now) noexcept {
  uint64_t words[1 + most_selective_words];
  words[0] = header.selective;
  size_t count = 1;
  if (header.type == FrameType::ack) {
    const size_t bytes = frame.length - sizeof header;
    if (bytes > most_selective_words * sizeof(uint64_t) || bytes % sizeof(uint64_t) != 0)
      return false;
    std::memcpy(words + 1, frame.data + sizeof header, bytes);
    count += bytes / sizeof(uint64_t);
  }
  const std::lock_guard guard(connection.lock);
  connection.put_off = false;
  return acknowledge_sent(connection, header.acknowledged, header.ack_delay, {words, count}, now);
}

// Data and the acknowledgement that rides on it, all with the lock taken once, as long as it is what
// comes nearly always: whole messages, the next ones. Everything else about the data is left to handle_data().
ReliableTransport::Handled ReliableTransport::handle_next(MessageSink& sink, Connection& connection,
                                                          const InboundFrame& frame,
                                                          const FrameHeader& header,
                                                          uint64_t now) noexcept {
  // Nothing may be handed up while the lock is held.
  if (batch_.connection != &connection || batch_.count + most_bundled > delivery_burst)
    deliver_batch(sink);
  const std::lock_guard guard(connection.lock);
  if (!put_off_or_acknowledge(connection, header, now)) return Handled::malformed;
  if (header.flags != frame_whole || header.sequence != connection.receive.expected() ||
      connection.receive.has_early() || connection.half.buffer != nullptr ||
      take_messages(sink, connection, frame.data + sizeof header, frame.length - sizeof header,
                    nullptr) != Taken::yes)
    return Handled::not_yet;
  connection.receive.advance();
  note_arrival(connection, frame.length, now);
  return Handled::yes;
}

void ReliableTransport::handle_data(MessageSink& sink, Connection& connection,
                                    const InboundFrame& frame, const FrameHeader& header,
                                    uint64_t now) noexcept {
  if ((header.flags & frame_wants_ack) != 0) acknowledge_soon(connection);
  switch (connection.receive.place_of(header.sequence)) {
    case ReceiveWindow::Place::next:
      break;
    case ReceiveWindow::Place::early:
      handle_early(sink, connection, frame, header, now);
      return;
    case ReceiveWindow::Place::duplicate:
      counts_.duplicates.add();
      acknowledge_soon(connection);  // the sender does not know that it came
      return;
    case ReceiveWindow::Place::beyond:
      counts_.dropped_for_room.add();
      return;
  }
  // It may have come early and found no room.
  if (take_kept(sink, connection, now)) return;
  const Taken taken = take_frame(sink, connection, header.flags, frame.data + sizeof header,
                                 frame.length - sizeof header, nullptr, now);
  go_on_after(sink, connection, taken, nullptr, frame.length, now);
}

// The expected frame, if it is kept. True: it was.
bool ReliableTransport::take_kept(MessageSink& sink, Connection& connection,
                                  uint64_t now) noexcept {
  FrameBuffer* kept = nullptr;
  {
    const std::lock_guard guard(connection.lock);
    kept = connection.receive.take_expected();
  }
  if (kept == nullptr) return false;
  const uint32_t length = kept->length;
  go_on_after(sink, connection, take_early(sink, connection, kept, now), kept, length, now);
  return true;
}

ReliableTransport::Taken ReliableTransport::take_early(MessageSink& sink, Connection& connection,
                                                       FrameBuffer* early, uint64_t now) noexcept {
  if (early->handed_up) {
    receive_pool_.release(early);
    return Taken::yes;
  }
  return take_frame(sink, connection, early->flags, early->data() + sizeof(FrameHeader),
                    early->length - sizeof(FrameHeader), early, now);
}

// After the expected frame, of `length` bytes: those that came early and follow it. `early`: the
// buffer of the expected frame, if it has one.
void ReliableTransport::go_on_after(MessageSink& sink, Connection& connection, Taken taken,
                                    FrameBuffer* early, uint32_t length, uint64_t now) noexcept {
  while (taken == Taken::yes) {
    {
      const std::lock_guard guard(connection.lock);
      connection.receive.advance();
      early = connection.receive.take_expected();
      if (early == nullptr) {
        note_arrival(connection, length, now);
        return;
      }
    }
    taken = take_early(sink, connection, early, now);
  }
  if (taken == Taken::malformed) {
    if (early != nullptr) receive_pool_.release(early);
    counts_.malformed.add();
    fail(sink, connection, "it sent a message that makes no sense");
    return;
  }
  counts_.dropped_for_room.add();
  if (early == nullptr) return;  // it will be sent again
  // It was acknowledged when it came early: only the timer tries again.
  const std::lock_guard guard(connection.lock);
  connection.receive.put_back(early);
  list(connection, now + room_retry_ns);
}

// Ahead of others that are missing. Parts of long messages say themselves where they belong, and go up at once;
// of these only the number is kept.
void ReliableTransport::handle_early(MessageSink& sink, Connection& connection,
                                     const InboundFrame& frame, const FrameHeader& header,
                                     uint64_t now) noexcept {
  counts_.early.add();
  acknowledge_soon(connection);  // tells the sender that something is missing
  const std::byte* const body = frame.data + sizeof header;
  MessageHeader message;
  const bool is_part =
      is_part_of_long_message(header.flags, body, frame.length - sizeof header, message);
  const uint32_t kept_bytes = is_part ? sizeof header : frame.length;
  // A sane sender keeps to its window. A peer gets at most half of the memory that is free, so that the
  // others get some.
  const uint64_t most_bytes =
      std::min(link_->receive_capacity_bytes() + link_->mtu(), receive_pool_.free_bytes());
  FrameBuffer* const kept = connection.receive.early_bytes() + kept_bytes > most_bytes
                                ? nullptr
                                : receive_pool_.acquire(kept_bytes);
  if (kept == nullptr) {
    counts_.dropped_for_room.add();
    return;
  }
  std::memcpy(kept->data(), frame.data, kept_bytes);
  kept->sequence = header.sequence;
  kept->flags = header.flags;
  kept->handed_up = is_part;
  if (is_part)
    add_to_batch(sink, connection, message, body + sizeof message, message.link_word, nullptr,
                 nullptr);
  const std::lock_guard guard(connection.lock);
  connection.receive.keep(kept);
  list(connection, now + longest_silence_ns());
}

}  // namespace lintel

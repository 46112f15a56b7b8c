#include "reliable/transmitter.h"

#include <algorithm>
#include <cstring>

#include "util/assert.h"
#include "util/guarded_memory.h"
#include "util/loan.h"

namespace lintel {

namespace {
// Time until the next attempt after the link took no more. Its queue drains by itself.
constexpr uint64_t link_full_retry_ns = 50'000;
// Takes the place of a payload whose memory is gone.
const std::byte nothing[PacketLink::largest_mtu]{};

// Length of a part on the stack of the application.
constexpr uint32_t longest_part_bytes = 2048;

// Copies `length` bytes of the body of a frame. If the payload is not readable any more, its bytes
// are zero, as in check_again().
void copy_body(FrameBuffer& frame, uint32_t offset, uint32_t length, std::byte* to) noexcept {
  const uint32_t held = frame.held_bytes - sizeof(FrameHeader);
  const uint32_t from_held = offset < held ? std::min(length, held - offset) : 0;
  std::memcpy(to, frame.data() + sizeof(FrameHeader) + offset, from_held);
  if (from_held == length) return;
  const std::byte* const payload = frame.payload + (offset + from_held - held);
  if (!guarded_copy(to + from_held, payload, length - from_held))
    std::memset(to + from_held, 0, length - from_held);
}

}  // namespace

[[gnu::always_inline]] inline FrameHeader Transmitter::header_of(const Connection& connection,
                                                                 FrameType type,
                                                                 uint64_t now_ns) noexcept {
  FrameHeader header{};
  header.version = frame_version;
  header.type = type;
  header.ack_delay = connection.pending.age(now_ns);
  header.connection = connection.peer_number;
  header.acknowledged = connection.receive.expected();
  if (connection.receive.has_early()) {
    uint64_t words[1 + most_selective_words];
    static_cast<void>(connection.receive.selective_words(words));
    header.selective = words[0];
  }
  return header;
}

// A payload in the application's memory may have changed since the frame was first sent, though it
// should not. The check is computed again: a frame whose check is wrong would be repeated for ever.
// If the memory is gone, no operation waits for the payload, but the frames behind it do.
void Transmitter::check_again(const Connection& connection, FrameBuffer& frame) noexcept {
  if (frame.compute_body_check(connection.send_seed)) return;
  frame.payload = nothing;
  static_cast<void>(frame.compute_body_check(connection.send_seed));
}

// A frame with its header, ready for the link. Returns the number of its pieces.
[[gnu::always_inline]] inline unsigned Transmitter::finish(Connection& connection,
                                                           FrameBuffer& frame, FrameHeader& header,
                                                           Piece (&pieces)[most_pieces]) noexcept {
  if (connection.secure != nullptr) [[unlikely]]
    return finish_sealed(connection, frame, header, pieces);
  if (frame.payload != nullptr && frame.transmission != 0) check_again(connection, frame);
  header.check = finish_check(frame.body_check, header);
  std::memcpy(frame.data(), &header, sizeof header);
  pieces[0] = {frame.data(), frame.held_bytes};
  if (frame.payload == nullptr) return 1;
  pieces[1] = {const_cast<std::byte*>(frame.payload), frame.length - frame.held_bytes};
  return 2;
}

unsigned Transmitter::finish_sealed(Connection& connection, FrameBuffer& frame,
                                    const FrameHeader& header,
                                    Piece (&pieces)[most_pieces]) noexcept {
  if (!frame.sealed && !seal(connection, frame, header)) return 0;
  frame.sealed = false;
  if (frame.payload == nullptr || connection.encrypts) {
    pieces[0] = {frame.data(), frame.length + tag_bytes};
    return 1;
  }
  pieces[0] = {frame.data(), frame.held_bytes};
  pieces[1] = {const_cast<std::byte*>(frame.payload), frame.length - frame.held_bytes};
  pieces[2] = {frame.data() + frame.held_bytes, tag_bytes};
  return 3;
}

// Each transmission has its own counter. The tag lies behind what the frame holds. False: the
// sealer is broken.
bool Transmitter::seal(const Connection& connection, FrameBuffer& frame,
                       const FrameHeader& header) noexcept {
  UnsealedFrame unsealed{frame.data(), frame.held_bytes, frame.payload,
                         frame.length - frame.held_bytes};
  FrameSealer& sealer = connection.secure->send;
  if (frame.encrypted) sealer.undo(frame.body_check, frame.data(), frame.held_bytes);
  frame.encrypted = false;
  uint64_t counter = seal(connection, header, unsealed);
  if (counter == 0 && !sealer.is_broken()) {
    // Like check_again(): the frames behind it wait for this one.
    unsealed.payload = frame.payload = nothing;
    counter = seal(connection, header, unsealed);
  }
  LINTEL_ASSERT((counter == 0) == sealer.is_broken());
  if (counter == 0) return false;
  frame.encrypted = sealer.encrypts();
  frame.body_check = static_cast<uint32_t>(counter);
  return true;
}

// Frames that may be sent again become plain before the key that encrypted them is forgotten.
uint64_t Transmitter::seal(const Connection& connection, const FrameHeader& header,
                           const UnsealedFrame& frame) noexcept {
  FrameSealer& sealer = connection.secure->send;
  if (sealer.forgets_key_next()) [[unlikely]]
    for (FrameBuffer* sent = connection.send.oldest(); sent != nullptr; sent = sent->next)
      if ((sent->encrypted || sent->sealed) && sealer.has_oldest_key(sent->body_check)) {
        if (sent->encrypted) sealer.undo(sent->body_check, sent->data(), sent->held_bytes);
        sent->encrypted = sent->sealed = false;
      }
  return sealer.seal(header, frame);
}

// PeerWatch ends a connection whose frames cannot be sealed. What is in its window stays there.
[[gnu::cold]] void Transmitter::fail_soon(Connection& connection, uint64_t now_ns) noexcept {
  timers_.set(connection, now_ns);
}

// The link did not take these. They are sent as they are, with their counters: while a link is full
// for seconds, new ones would run through an epoch of which the peer sees no frame, and so misses
// the next key.
[[gnu::cold]] void Transmitter::keep_seals(FrameBuffer* const* frames, unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) frames[i]->sealed = true;
}

// Up to `most` frames at a time. While there may be frames that are longer than the path takes,
// frames go one by one. Only one of those is on the way, in parts, so that the peer needs one
// buffer for them.
template <unsigned most>
[[gnu::always_inline]] inline void Transmitter::transmit_frames(Connection& connection,
                                                                Burst<most>& burst,
                                                                uint64_t now_ns) noexcept {
  auto& [frames, pieces, outbound] = burst;
  bool long_waits = most == 1 && connection.send.has_long_on_the_way();
  for (bool exhausted = false; !exhausted;) {
    const unsigned count = connection.send.collect(frames, most, exhausted);
    if (count == 0) break;
    if (most == 1 && connection.send.is_long(*frames[0])) [[unlikely]] {
      if (long_waits || !send_in_parts(connection, *frames[0], now_ns)) break;
      long_waits = true;
      continue;
    }
    FrameHeader header = header_of(connection, FrameType::data, now_ns);
    for (unsigned i = 0; i < count; ++i) {
      FrameBuffer& frame = *frames[i];
      header.sequence = frame.sequence;
      header.flags = frame.flags;
      if (connection.send.wants_ack(frame) || (exhausted && i + 1 == count))
        header.flags |= frame_wants_ack;
      const unsigned count_of_pieces = finish(connection, frame, header, pieces[i]);
      if (count_of_pieces == 0) [[unlikely]]
        return fail_soon(connection, now_ns);
      outbound[i] = {&connection.route.address, pieces[i], count_of_pieces};
    }
    const unsigned taken = context_.link.send(outbound, count);
    uint64_t repeated = 0;
    for (unsigned i = 0; i < taken; ++i) repeated += frames[i]->transmission != 0;
    connection.send.mark_sent(frames, taken, now_ns);
    if (taken != 0) connection.pending.went();
    if (repeated != 0) context_.counters.retransmissions.add(repeated);
    if (taken < count) {
      wait_to_send(connection, now_ns, link_full_retry_ns);
      if (connection.secure != nullptr) keep_seals(frames + taken, count - taken);
    }
    if (taken < most) break;
  }
}

void Transmitter::transmit_one_by_one(Connection& connection, uint64_t now_ns) noexcept {
  Burst<1> one;
  transmit_frames(connection, one, now_ns);
}

void Transmitter::transmit_many(Connection& connection, uint64_t now_ns) noexcept {
  const Loan<LongBurst> burst(long_bursts_);
  transmit_frames<PacketLink::largest_burst>(connection, burst.get(), now_ns);
}

void Transmitter::transmit(Connection& connection, uint64_t now_ns) noexcept {
  if (connection.send.has_long_frames()) [[unlikely]]
    transmit_one_by_one(connection, now_ns);
  else if (connection.send.waiting_frames() > burst_on_stack)
    transmit_many(connection, now_ns);
  else {
    Burst<burst_on_stack> few;
    transmit_frames(connection, few, now_ns);
  }
  if (connection.send.in_flight_bytes() == 0) return;
  connection.silence.await(now_ns);
  timers_.set(connection, connection.send.deadline_ns());
}

void Transmitter::wait_to_send(Connection& connection, uint64_t now_ns,
                               uint64_t pause_ns) noexcept {
  connection.retry_ns = now_ns + std::max(pause_ns, link_full_retry_ns);
  timers_.set(connection, connection.retry_ns);
}

void Transmitter::send_datagram(Connection& connection, FrameBuffer& frame,
                                uint64_t now_ns) noexcept {
  FrameHeader header = header_of(connection, FrameType::datagram, now_ns);
  Piece pieces[most_pieces];
  const unsigned count = finish(connection, frame, header, pieces);
  if (count == 0) [[unlikely]]
    return fail_soon(connection, now_ns);
  const OutboundFrame outbound{&connection.route.address, pieces, count};
  if (context_.link.send(&outbound, 1) == 1) connection.pending.went();
  context_.counters.datagrams_sent.increment();
}

bool Transmitter::send_control(const Connection& connection, FrameType type, uint32_t number,
                               const uint64_t* body, size_t words, uint64_t now_ns) noexcept {
  FrameHeader header = header_of(connection, type, now_ns);
  header.sequence = number;
  const size_t bytes = words * sizeof *body;
  std::byte sealed[sizeof header + most_selective_words * sizeof *body + tag_bytes];
  Piece pieces[2] = {{reinterpret_cast<std::byte*>(&header), sizeof header},
                     {const_cast<std::byte*>(reinterpret_cast<const std::byte*>(body)), bytes}};
  unsigned count = words != 0 ? 2 : 1;
  if (connection.secure == nullptr) {
    header.check = finish_check(body_check(connection.send_seed, body, bytes), header);
  } else {
    const auto held_bytes = static_cast<uint32_t>(sizeof header + bytes);
    if (bytes != 0) std::memcpy(sealed + sizeof header, body, bytes);
    if (seal(connection, header, {sealed, held_bytes}) == 0) return false;
    pieces[0] = {sealed, held_bytes + tag_bytes};
    count = 1;
  }
  const OutboundFrame frame{&connection.route.address, pieces, count};
  return context_.link.send(&frame, 1) == 1;
}

void Transmitter::acknowledge(Connection& connection, uint64_t now_ns) noexcept {
  uint64_t selective[1 + most_selective_words];
  size_t words = 1;
  if (connection.receive.has_early()) words = connection.receive.selective_words(selective);
  // The first word is in the header.
  if (send_control(connection, FrameType::ack, connection.probe_of_peer, selective + 1, words - 1,
                   now_ns)) {
    connection.pending.went();
    context_.counters.acks_sent.increment();
  } else {
    connection.pending.put_off(now_ns, context_.settings.ack_delay_ns);
    timers_.set(connection, connection.pending.deadline_ns());
  }
}

// Sends a probe. It is as long as the reset that may answer it.
void Transmitter::probe(Connection& connection, uint32_t number, uint64_t now_ns) noexcept {
  constexpr uint64_t nothing[sizeof(ResetBody) / sizeof(uint64_t)] = {};
  static_cast<void>(
      send_control(connection, FrameType::probe, number, nothing, std::size(nothing), now_ns));
}

// The peer answers the number that came last. So the short probe goes first: its number alone means
// that the long one was lost.
void Transmitter::probe_path(Connection& connection, uint32_t bytes, uint64_t now_ns) noexcept {
  SendWindow& window = connection.send;
  const uint32_t short_number = window.take_number();
  const uint32_t long_number = window.take_number();
  window.path().sent(short_number, long_number, window.round_trip().smoothed_ns(), now_ns);
  FrameBuffer* const frame = sent_.acquire(bytes + connection.seal_bytes);
  if (frame == nullptr) return;  // no answer: it is sent again
  probe(connection, short_number, now_ns);
  frame->length = frame->held_bytes = bytes;
  std::memset(frame->data(), 0, bytes);
  static_cast<void>(frame->compute_body_check(connection.send_seed));
  FrameHeader header = header_of(connection, FrameType::probe, now_ns);
  header.sequence = long_number;
  Piece pieces[most_pieces];
  const unsigned count = finish(connection, *frame, header, pieces);
  const OutboundFrame outbound{&connection.route.address, pieces, count};
  if (count != 0)
    static_cast<void>(context_.link.send(&outbound, 1));
  else
    fail_soon(connection, now_ns);
  sent_.release(frame);
}

// Each part is checked or sealed by itself. False: the link takes no more for now, or the peer,
// whose room may be a few slots: the other parts go a round trip later. The link is tried rarely,
// since a part that it does not take costs a counter of frames (frame_seal.h).
bool Transmitter::send_in_parts(Connection& connection, FrameBuffer& frame,
                                uint64_t now_ns) noexcept {
  if (connection.retry_ns != UINT64_MAX && now_ns < connection.retry_ns) return false;
  if (frame.encrypted) {
    connection.secure->send.undo(frame.body_check, frame.data(), frame.held_bytes);
    frame.encrypted = false;
  }
  frame.sealed = false;
  PartProgress& progress = connection.part_sent;
  if (progress.sequence != frame.sequence) progress = {frame.sequence, 0};
  FrameHeader header = header_of(connection, FrameType::part, now_ns);
  header.sequence = frame.sequence;
  header.flags = frame.flags & frame_whole;
  constexpr uint32_t overhead = sizeof header + sizeof(PartHeader);
  const uint32_t room = std::min(connection.frame_bytes, longest_part_bytes) - overhead;
  const uint32_t body_bytes = frame.length - sizeof header;
  const uint32_t probe_number = connection.send.probe_number_behind_next();
  uint64_t parts = connection.send.frames_with_room(overhead + room);
  while (progress.offset < body_bytes) {
    if (parts-- == 0) {
      wait_to_send(connection, now_ns, connection.send.round_trip().smoothed_ns());
      return false;
    }
    std::byte bytes[longest_part_bytes + tag_bytes];
    const uint32_t length = std::min(room, body_bytes - progress.offset);
    const bool is_last = progress.offset + length == body_bytes;
    const PartHeader part{progress.offset, body_bytes, is_last ? probe_number : 0};
    std::memcpy(bytes + sizeof header, &part, sizeof part);
    copy_body(frame, progress.offset, length, bytes + overhead);
    if (is_last) header.flags |= frame_wants_ack;
    Piece piece{bytes, overhead + length};
    if (connection.secure != nullptr) {
      if (seal(connection, header, {bytes, overhead + length}) == 0) {
        fail_soon(connection, now_ns);
        return false;
      }
      piece.length += tag_bytes;
    } else {
      const uint32_t check =
          body_check(connection.send_seed, bytes + sizeof header, piece.length - sizeof header);
      header.check = finish_check(check, header);
      std::memcpy(bytes, &header, sizeof header);
    }
    const OutboundFrame outbound{&connection.route.address, &piece, 1};
    if (context_.link.send(&outbound, 1) == 0) {
      wait_to_send(connection, now_ns, link_full_retry_ns);
      return false;
    }
    progress.offset += length;
  }
  progress = {};
  if (frame.transmission != 0) context_.counters.retransmissions.increment();
  context_.counters.frames_in_parts.increment();
  FrameBuffer* const sent[] = {&frame};
  connection.send.mark_sent(sent, 1, now_ns);
  connection.pending.went();
  // No later frame shows that parts were lost: those behind this one wait. The last part, if it is
  // short, may take the only slot of the peer, so it is a probe itself.
  connection.send.renew_probe();
  LINTEL_ASSERT(connection.send.probe_number() == probe_number);
  probe(connection, now_ns);
  return true;
}

}  // namespace lintel

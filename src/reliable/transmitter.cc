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
// Maximum length of a part of a frame, which is built on the stack of the application.
constexpr uint32_t longest_part_bytes = 2048;

// `length` bytes of the body of a frame. What is not readable any more is left zero.
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
  header.connection = connection.life.peer_number();
  connection.receive.window.acknowledge_in(header);
  return header;
}

// PeerWatch ends a connection whose frames cannot be sealed. What is in its window stays there.
[[gnu::cold]] void Transmitter::fail_soon(Connection& connection, uint64_t now_ns) noexcept {
  context_.timers.set(connection, now_ns);
}

// Sends up to `most` frames at a time. While there may be frames that are longer than the path
// takes, frames go one by one. Only one of those is on the way, in parts, so that the peer needs
// one buffer for them. False: the link takes no more for now.
template <unsigned most, bool several>
[[gnu::always_inline]] inline bool Transmitter::transmit_frames(Connection& connection,
                                                                SendPath& path, Burst<most>& burst,
                                                                uint64_t now_ns) noexcept {
  auto& [frames, pieces, outbound] = burst;
  const LinkAddress& to =
      several || most == 1 ? address_of(connection, path) : connection.life.route().address;
  SendWindow& window = connection.send.window;
  bool long_waits = most == 1 && window.has_long_on_the_way();
  for (bool exhausted = false; !exhausted;) {
    const uint64_t limit = several ? window.limit_of(path) : path.window_bytes();
    const unsigned count = window.collect(path, limit, frames, most, exhausted);
    if (count == 0) break;
    if (most == 1 && window.is_long(*frames[0])) [[unlikely]] {
      if (long_waits || !send_in_parts(connection, path, *frames[0], now_ns)) break;
      long_waits = true;
      continue;
    }
    FrameHeader header = header_of(connection, FrameType::data, now_ns);
    for (unsigned i = 0; i < count; ++i) {
      FrameBuffer& frame = *frames[i];
      header.sequence = frame.sequence;
      header.flags = frame.flags;
      if (window.wants_ack(path, frame) || (exhausted && i + 1 == count))
        header.flags |= frame_wants_ack;
      const unsigned parts =
          connection.protection.finish(frame, header, pieces[i], window.queue().oldest());
      if (parts == 0) [[unlikely]] {
        fail_soon(connection, now_ns);
        return false;
      }
      outbound[i] = {&to, pieces[i], parts};
    }
    const unsigned taken = context_.link.send(outbound, count);
    uint64_t repeated = 0;
    for (unsigned i = 0; i < taken; ++i) repeated += frames[i]->transmission != 0;
    window.mark_sent(path, frames, taken, now_ns);
    if (taken != 0) connection.pending.sent();
    if (repeated != 0) context_.counters.retransmissions.add(repeated);
    if (taken < count) {
      wait_to_send(connection, now_ns, link_full_retry_ns);
      connection.protection.keep_seals(frames + taken, count - taken);
      return false;
    }
    if (taken < most) break;
  }
  return true;
}

[[gnu::always_inline]] inline void Transmitter::transmit_one(Connection& connection,
                                                             FrameBuffer& frame,
                                                             uint64_t now_ns) noexcept {
  SendWindow& window = connection.send.window;
  SendPath& path = window.first();
  FrameHeader header = header_of(connection, FrameType::data, now_ns);
  header.sequence = frame.sequence;
  header.flags = frame.flags;
  if (window.wants_ack(path, frame)) header.flags |= frame_wants_ack;
  Piece pieces[FrameProtection::most_pieces];
  const unsigned parts =
      connection.protection.finish(frame, header, pieces, window.queue().oldest());
  if (parts == 0) [[unlikely]]
    return fail_soon(connection, now_ns);
  const OutboundFrame outbound{&connection.life.route().address, pieces, parts};
  if (context_.link.send(&outbound, 1) != 1) [[unlikely]] {
    FrameBuffer* const refused = &frame;
    wait_to_send(connection, now_ns, link_full_retry_ns);
    return connection.protection.keep_seals(&refused, 1);
  }
  window.mark_first_sent(frame, now_ns);
  connection.pending.sent();
}

void Transmitter::transmit_many(Connection& connection, uint64_t now_ns) noexcept {
  const Loan<LongBurst> burst(long_bursts_);
  transmit_frames<PacketLink::largest_burst>(connection, connection.send.window.first(),
                                             burst.get(), now_ns);
}

// Several paths, or perhaps frames that are longer than they take.
void Transmitter::transmit_unusual(Connection& connection, uint64_t now_ns) noexcept {
  SendWindow& window = connection.send.window;
  if (window.has_long_frames()) {
    Burst<1> one;
    if (!window.awaits_room_for_burst())
      transmit_frames(connection, window.preferred(), one, now_ns);
  } else if (window.can_send()) {
    const Loan<LongBurst> burst(long_bursts_);
    unsigned refused = 0;
    while (SendPath* const path = window.pick_path(refused))
      if (!transmit_frames<PacketLink::largest_burst, true>(connection, *path, burst.get(), now_ns))
        refused |= 1u << path->index();
  }
  if (!window.has_in_flight()) return;
  connection.silence.await(now_ns);
  context_.timers.set(connection, window.deadline_ns());
}

void Transmitter::transmit(Connection& connection, uint64_t now_ns) noexcept {
  SendWindow& window = connection.send.window;
  if (window.is_unusual()) [[unlikely]]
    return transmit_unusual(connection, now_ns);
  SendPath& path = window.first();
  if (FrameBuffer* const only = window.only_waiting()) [[likely]] {
    transmit_one(connection, *only, now_ns);
  } else if (window.awaits_room_for_burst()) {
    // The acknowledgement that makes the room calls this function again.
    LINTEL_ASSERT(path.in_flight_bytes() != 0);
  } else if (window.waiting_frames() > burst_on_stack) {
    transmit_many(connection, now_ns);
  } else {
    Burst<burst_on_stack> few;
    transmit_frames(connection, path, few, now_ns);
  }
  if (path.in_flight_bytes() == 0) return;
  connection.silence.await(now_ns);
  context_.timers.set(connection, path.deadline_ns());
}

void Transmitter::wait_to_send(Connection& connection, uint64_t now_ns,
                               uint64_t pause_ns) noexcept {
  const uint64_t retry_ns = now_ns + std::max(pause_ns, link_full_retry_ns);
  connection.send.retry_at(retry_ns);
  context_.timers.set(connection, retry_ns);
}

// One that is not kept for the case that it is lost. False: it could not be sent.
bool Transmitter::send_frame(Connection& connection, const LinkAddress& to, FrameBuffer& frame,
                             FrameHeader& header, uint64_t now_ns) noexcept {
  Piece pieces[FrameProtection::most_pieces];
  const unsigned count =
      connection.protection.finish(frame, header, pieces, connection.send.window.queue().oldest());
  if (count == 0) [[unlikely]]
    fail_soon(connection, now_ns);
  const OutboundFrame outbound{&to, pieces, count};
  return count != 0 && context_.link.send(&outbound, 1) == 1;
}

void Transmitter::send_datagram(Connection& connection, FrameBuffer& frame,
                                uint64_t now_ns) noexcept {
  FrameHeader header = header_of(connection, FrameType::datagram, now_ns);
  const LinkAddress& to = address_of(connection, connection.send.window.preferred());
  if (send_frame(connection, to, frame, header, now_ns)) connection.pending.sent();
  context_.counters.datagrams_sent.increment();
}

bool Transmitter::send_control(Connection& connection, const LinkAddress& to, FrameType type,
                               uint32_t number, std::span<const uint64_t> body,
                               uint64_t now_ns) noexcept {
  FrameHeader header = header_of(connection, type, now_ns);
  header.sequence = number;
  std::byte bytes[sizeof header + most_selective_words * sizeof body[0] + tag_bytes];
  LINTEL_ASSERT(body.size() <= most_selective_words);
  if (!body.empty()) std::memcpy(bytes + sizeof header, body.data(), body.size_bytes());
  const uint32_t length =
      connection.protection.finish(bytes, static_cast<uint32_t>(sizeof header + body.size_bytes()),
                                   header, connection.send.window.queue().oldest());
  const Piece piece{bytes, length};
  const OutboundFrame frame{&to, &piece, 1};
  return length != 0 && context_.link.send(&frame, 1) == 1;
}

void Transmitter::acknowledge(Connection& connection, uint64_t now_ns) noexcept {
  uint64_t selective[1 + most_selective_words];
  size_t words = 1;
  if (connection.receive.window.has_kept())
    words = connection.receive.window.selective_words(selective);
  // The first word is in the header.
  if (send_control(connection, answer_address_of(connection), FrameType::ack,
                   connection.receive.window.probe(), {selective + 1, words - 1}, now_ns)) {
    connection.pending.sent();
    context_.counters.acks_sent.increment();
  } else {
    connection.pending.back_off(now_ns, context_.settings.ack_delay_ns);
    context_.timers.set(connection, connection.pending.deadline_ns());
  }
}

// Sends a probe. It is as long as the reset that may answer it.
void Transmitter::probe(Connection& connection, const SendPath& path, uint32_t number,
                        uint64_t now_ns) noexcept {
  constexpr uint64_t nothing[sizeof(ResetBody) / sizeof(uint64_t)] = {};
  static_cast<void>(send_control(connection, address_of(connection, path), FrameType::probe, number,
                                 nothing, now_ns));
}

void Transmitter::probe_long(Connection& connection, const SendPath& path, uint32_t number,
                             uint32_t bytes, uint64_t now_ns) noexcept {
  FrameBuffer* const frame = context_.sent.acquire(bytes + connection.protection.seal_bytes());
  if (frame == nullptr) return;  // no answer: it is sent again
  frame->length = frame->held_bytes = bytes;
  std::memset(frame->data(), 0, bytes);
  static_cast<void>(connection.protection.prepare(*frame));
  FrameHeader header = header_of(connection, FrameType::probe, now_ns);
  header.sequence = number;
  static_cast<void>(send_frame(connection, address_of(connection, path), *frame, header, now_ns));
  context_.sent.release(frame);
}

void Transmitter::probe_suspended(Connection& connection, SendPath& path,
                                  uint64_t now_ns) noexcept {
  const uint32_t number = path.losses().take_number();
  connection.send.window.note_probe(path, number, now_ns);
  probe_long(connection, path, number, connection.send.frame_bytes(), now_ns);
}

// The peer answers the number that came last. So the short probe goes first: its number alone means
// that the long one was lost.
void Transmitter::probe_path(Connection& connection, uint32_t bytes, uint64_t now_ns) noexcept {
  SendPath& path = connection.send.window.preferred();
  const uint32_t short_number = path.losses().take_number();
  const uint32_t long_number = path.losses().take_number();
  connection.send.window.mtu().sent(short_number, long_number, path.round_trip().smoothed_ns(),
                                    now_ns);
  probe(connection, path, short_number, now_ns);
  probe_long(connection, path, long_number, bytes, now_ns);
}

// Each part is checked or sealed by itself. False: the link takes no more for now, or the peer,
// whose room may be a few slots: the other parts go a round trip later. The link is tried rarely,
// since a part that it does not take costs a counter of frames (frame_seal.h).
bool Transmitter::send_in_parts(Connection& connection, SendPath& path, FrameBuffer& frame,
                                uint64_t now_ns) noexcept {
  SendingHalf& send = connection.send;
  LossDetector& losses = path.losses();
  if (send.is_blocked(now_ns)) return false;
  connection.protection.make_plain(frame);
  FrameHeader header = header_of(connection, FrameType::part, now_ns);
  header.sequence = frame.sequence;
  header.flags = frame.flags & frame_whole;
  constexpr uint32_t overhead = sizeof header + sizeof(PartHeader);
  const uint32_t room = std::min(send.frame_bytes(), longest_part_bytes) - overhead;
  const uint32_t body_bytes = frame.length - sizeof header;
  const uint32_t probe_number = losses.probe_number_behind_next();
  uint64_t parts = send.window.frames_with_room(overhead + room);
  uint32_t offset = send.part_offset(frame);
  while (offset < body_bytes) {
    if (parts-- == 0) {
      wait_to_send(connection, now_ns, path.round_trip().smoothed_ns());
      return false;
    }
    std::byte bytes[longest_part_bytes + tag_bytes];
    const uint32_t length = std::min(room, body_bytes - offset);
    const bool is_last = offset + length == body_bytes;
    const PartHeader part{offset, body_bytes, is_last ? probe_number : 0};
    std::memcpy(bytes + sizeof header, &part, sizeof part);
    copy_body(frame, offset, length, bytes + overhead);
    if (is_last) header.flags |= frame_wants_ack;
    const uint32_t part_bytes = connection.protection.finish(bytes, overhead + length, header,
                                                             send.window.queue().oldest());
    if (part_bytes == 0) {
      fail_soon(connection, now_ns);
      return false;
    }
    const Piece piece{bytes, part_bytes};
    const OutboundFrame outbound{&address_of(connection, path), &piece, 1};
    if (context_.link.send(&outbound, 1) == 0) {
      wait_to_send(connection, now_ns, link_full_retry_ns);
      return false;
    }
    send.note_part(length);
    offset += length;
  }
  send.end_parts();
  if (frame.transmission != 0) context_.counters.retransmissions.increment();
  context_.counters.frames_in_parts.increment();
  FrameBuffer* const sent[] = {&frame};
  send.window.mark_sent(path, sent, 1, now_ns);
  connection.pending.sent();
  // No later frame shows that parts were lost: those behind this one wait. The last part, if it is
  // short, may take the only slot of the peer, so it is a probe itself.
  losses.renew_probe();
  LINTEL_ASSERT(losses.probe_number() == probe_number);
  probe(connection, path, now_ns);
  return true;
}

}  // namespace lintel

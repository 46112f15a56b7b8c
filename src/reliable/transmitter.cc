#include "reliable/transmitter.h"

#include <cstring>

#include "util/assert.h"

namespace lintel {

namespace {
// When the link takes no more; its queue drains by itself.
constexpr uint64_t link_full_retry_ns = 50'000;
// Takes the place of a payload whose memory is gone.
const std::byte nothing[PacketLink::largest_mtu]{};
}  // namespace

FrameHeader Transmitter::header_of(const Connection& connection, FrameType type,
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
inline unsigned Transmitter::finish(Connection& connection, FrameBuffer& frame, FrameHeader& header,
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
  std::byte* const pages = frame.sealed ? sent_.pages_of(frame) : pages_for(connection, frame);
  if (!frame.sealed && !seal(connection, frame, header, pages)) return 0;
  frame.sealed = false;
  if (frame.payload == nullptr || connection.encrypts) {
    pieces[0] = {pages != nullptr ? pages : frame.data(), frame.length + tag_bytes};
    return 1;
  }
  pieces[0] = {frame.data(), frame.held_bytes};
  pieces[1] = {const_cast<std::byte*>(frame.payload), frame.length - frame.held_bytes};
  pieces[2] = {frame.data() + frame.held_bytes, tag_bytes};
  return 3;
}

// Where a frame is encrypted to that the link may refer to afterwards. nullptr: to its own place. A
// frame that is sent again gets other pages, since its first copy may still be on its way. A copy
// that is there even when its pages are used again has a wrong tag.
std::byte* Transmitter::pages_for(const Connection& connection, FrameBuffer& frame) noexcept {
  const bool may_be_referred_to = connection.encrypts && frame.payload != nullptr &&
                                  frame.length >= context_.link.properties().least_referred_bytes;
  return may_be_referred_to ? sent_.renew_pages(frame) : nullptr;
}

// Each transmission has its own counter. The tag lies behind what the frame holds. False: the
// sealer is broken.
bool Transmitter::seal(const Connection& connection, FrameBuffer& frame, const FrameHeader& header,
                       std::byte* pages) noexcept {
  UnsealedFrame unsealed{frame.data(), frame.held_bytes, frame.payload,
                         frame.length - frame.held_bytes, pages};
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
  frame.encrypted = sealer.encrypts() && pages == nullptr;
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

void Transmitter::transmit(Connection& connection, uint64_t now_ns) noexcept {
  FrameBuffer* frames[burst];
  Piece pieces[burst][most_pieces];
  OutboundFrame outbound[burst];
  for (bool exhausted = false; !exhausted;) {
    const unsigned count = connection.send.collect(frames, burst, exhausted);
    if (count == 0) break;
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
      const bool payload_stays =
          frame.payload != nullptr && (count_of_pieces > 1 || frame.pages != CiphertextPages::none);
      outbound[i] = {&connection.route.address, pieces[i], count_of_pieces, payload_stays};
    }
    const unsigned taken = context_.link.send(outbound, count);
    uint64_t repeated = 0;
    for (unsigned i = 0; i < taken; ++i) repeated += frames[i]->transmission != 0;
    connection.send.mark_sent(frames, taken, now_ns);
    if (taken != 0) connection.pending.went();
    if (repeated != 0) context_.counters.retransmissions.add(repeated);
    if (taken < count) {
      connection.retry_ns = now_ns + link_full_retry_ns;
      timers_.set(connection, connection.retry_ns);
      if (connection.secure != nullptr) keep_seals(frames + taken, count - taken);
    }
    if (taken < burst) break;
  }
  if (connection.send.in_flight_bytes() == 0) return;
  connection.silence.await(now_ns);
  timers_.set(connection, connection.send.deadline_ns());
}

void Transmitter::send_datagram(Connection& connection, FrameBuffer& frame,
                                uint64_t now_ns) noexcept {
  FrameHeader header = header_of(connection, FrameType::datagram, now_ns);
  Piece pieces[most_pieces];
  const unsigned count = finish(connection, frame, header, pieces);
  if (count == 0) [[unlikely]]
    return fail_soon(connection, now_ns);
  const OutboundFrame outbound{&connection.route.address, pieces, count, false};
  if (context_.link.send(&outbound, 1) == 1) connection.pending.went();
  context_.counters.datagrams_sent.increment();
}

bool Transmitter::send_control(const Connection& connection, FrameType type, const uint64_t* body,
                               size_t words, uint64_t now_ns) noexcept {
  FrameHeader header = header_of(connection, type, now_ns);
  header.sequence =
      type == FrameType::probe ? connection.send.probe_number() : connection.probe_of_peer;
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
  const OutboundFrame frame{&connection.route.address, pieces, count, false};
  return context_.link.send(&frame, 1) == 1;
}

void Transmitter::acknowledge(Connection& connection, uint64_t now_ns) noexcept {
  uint64_t selective[1 + most_selective_words];
  size_t words = 1;
  if (connection.receive.has_early()) words = connection.receive.selective_words(selective);
  // The first word is in the header.
  if (send_control(connection, FrameType::ack, selective + 1, words - 1, now_ns)) {
    connection.pending.went();
    context_.counters.acks_sent.increment();
  } else {
    connection.pending.put_off(now_ns, context_.settings.ack_delay_ns);
    timers_.set(connection, connection.pending.deadline_ns());
  }
}

// As long as the reset that may answer it.
void Transmitter::probe(Connection& connection, uint64_t now_ns) noexcept {
  constexpr uint64_t nothing[sizeof(ResetBody) / sizeof(uint64_t)] = {};
  static_cast<void>(
      send_control(connection, FrameType::probe, nothing, std::size(nothing), now_ns));
}

}  // namespace lintel

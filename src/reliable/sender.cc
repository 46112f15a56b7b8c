#include "reliable/sender.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "util/guarded_memory.h"
#include "util/lock.h"

namespace lintel {

namespace {

// Maximum number of bytes queued beyond the window: enough to continue while acknowledgements
// travel.
constexpr uint64_t queue_beyond_window_bytes = 128 * 1024;
constexpr uint32_t most_queued_frames = 2048;
// Bulk data is collected up to this before it is sent: one system call, one segmented burst.
constexpr uint64_t collected_bytes = 60 * 1024;
constexpr unsigned collected_frames = PacketLink::largest_burst;
constexpr uint64_t no_buffer_retry_ns = 50'000;

uint64_t total_length(const Piece* pieces, unsigned count) noexcept {
  uint64_t length = 0;
  for (unsigned i = 0; i < count; ++i) length += pieces[i].length;
  return length;
}

// Whether the message waits for the next one, which follows at once.
bool collects(const MessageHeader& header, const SendWindow& window) noexcept {
  return header.kind == MessageKind::data && (header.flags & flag_last) == 0 &&
         (header.modes & data_pauses) == 0 && window.queue().unsent_frames() < collected_frames &&
         window.queue().unsent_bytes() < collected_bytes;
}

// A shorter payload is copied at once more cheaply than its place is watched.
constexpr uint64_t in_place_min_bytes = 2048;

// Walks through the pieces of a payload, copying it bit by bit.
class PieceReader {
 public:
  PieceReader(const Piece* pieces, unsigned count) noexcept : piece_(pieces), left_(count) {}
  // False: the application's memory is not there (PTL_NI_SEGV).
  [[nodiscard]] bool read(std::byte* to, uint64_t bytes) noexcept {
    while (bytes != 0 && left_ != 0) {
      const uint64_t part = std::min(piece_->length - offset_, bytes);
      if (part != 0 && !guarded_copy(to, piece_->base + offset_, part)) return false;
      to += part;
      bytes -= part;
      offset_ += part;
      if (offset_ < piece_->length) continue;
      ++piece_;
      --left_;
      offset_ = 0;
    }
    return bytes == 0;
  }

 private:
  const Piece* piece_;
  unsigned left_;
  uint64_t offset_ = 0;
};

// Writes a header with the length of the payload as its link word. It is written in words, as the
// check reads it.
void write_header(std::byte* to, const MessageHeader& header, uint32_t length) noexcept {
  static_assert(offsetof(MessageHeader, link_word) == 0);
  uint64_t first;
  std::memcpy(&first, &header, sizeof first);
  first = first >> 32 << 32 | length;
  std::memcpy(to, &first, sizeof first);
  std::memcpy(to + sizeof first, reinterpret_cast<const std::byte*>(&header) + sizeof first,
              sizeof header - sizeof first);
}

}  // namespace

SendStatus Sender::send(Connection& connection, const MessageHeader& header, const Piece* pieces,
                        unsigned count) noexcept {
  const uint64_t total = total_length(pieces, count);
  if (total > longest_eager_bytes && !connection.send.take_long(total)) [[unlikely]]
    return SendStatus::inaccessible;
  const Message message{header, pieces, count, static_cast<uint32_t>(total)};
  if ((header.flags & flag_unreliable) != 0 && header.kind == MessageKind::put &&
      message_frame_overhead + message.length <= connection.send.frame_bytes() &&
      !connection.send.window.can_send())
    return send_datagram(connection, message);

  const SendStatus status = queue(connection, message);
  const bool queued = status == SendStatus::sent;
  if (queued && collects(header, connection.send.window)) return status;
  const uint64_t now_ns = context_.settings.clock();
  if (queued && acknowledger_.holds(connection, header, now_ns)) return status;
  transmitter_.transmit(connection, now_ns);
  if (queued && is_acknowledgement(header))
    connection.replies.acknowledgement_went(context_.settings.clock());
  return status;
}

[[gnu::always_inline]] inline SendStatus Sender::queue(Connection& connection,
                                                       const Message& message) noexcept {
  const SendWindow& window = connection.send.window;
  const FrameQueue& frames = window.queue();
  // A peer that does not acknowledge gets no more of the memory than is left for the others.
  constexpr uint32_t many_frames = 8;
  if (frames.frames() >= many_frames && frames.bytes() > context_.sent.free_bytes())
    return SendStatus::queue_full;
  if (!frames.empty() &&
      (frames.frames() >= most_queued_frames ||
       frames.bytes() + message.length > window.window_bytes() + queue_beyond_window_bytes))
    return SendStatus::queue_full;
  const SendStatus status = append(connection, message);
  // Nothing of this peer is on the way, so acknowledgements of other peers make the room: retry.
  if (status == SendStatus::queue_full)
    context_.timers.set(connection, context_.settings.clock() + no_buffer_retry_ns);
  return status;
}

// One frame without state: a loss is not noticed.
SendStatus Sender::send_datagram(Connection& connection, const Message& message) noexcept {
  FrameBuffer* frame = nullptr;
  const SendStatus status = fill_frame(connection, message, frame);
  if (status == SendStatus::sent)
    transmitter_.send_datagram(connection, *frame, context_.settings.clock());
  context_.sent.release_chain(frame);
  return status == SendStatus::queue_full ? SendStatus::sent : status;
}

// False: there is no frame that waits to be sent, or no room in it.
bool Sender::join_last(Connection& connection, const Message& message,
                       SendStatus& status) noexcept {
  const auto& [header, pieces, count, length] = message;
  SendWindow& window = connection.send.window;
  FrameBuffer* const frame = window.queue().newest_unsent();
  if (frame == nullptr || frame->messages == 0 || frame->messages == most_bundled ||
      frame->payload != nullptr || frame->encrypted || frame->sealed)
    return false;
  const uint32_t start = bundle_aligned(frame->length);
  const uint64_t end = uint64_t{start} + sizeof header + length;
  if (end > std::min(context_.sent.capacity_of(*frame) - connection.protection.seal_bytes(),
                     connection.send.frame_bytes()))
    return false;
  std::byte* const to = frame->data() + start;
  status = SendStatus::inaccessible;
  if (!PieceReader(pieces, count).read(to + sizeof header, length)) return true;
  status = SendStatus::sent;
  const auto grown = static_cast<uint32_t>(end) - frame->length;
  std::memset(frame->data() + frame->length, 0, start - frame->length);
  write_header(to, header, length);
  frame->length += grown;
  frame->held_bytes += grown;
  ++frame->messages;
  connection.protection.note_growth(*frame, grown);
  connection.send.request_release(*frame, false);
  window.note_growth(grown);
  return true;
}

// Copies a message that fits into one frame. `frame`: for the pool, unless it was sent.
[[gnu::always_inline]] inline SendStatus Sender::fill_frame(const Connection& connection,
                                                            const Message& message,
                                                            FrameBuffer*& frame) noexcept {
  const auto& [header, pieces, count, length] = message;
  const FrameProtection& protection = connection.protection;
  const uint32_t bytes = message_frame_overhead + length;
  LINTEL_ASSERT(bytes <= connection.send.frame_bytes());
  frame = context_.sent.acquire(bytes + protection.seal_bytes());
  if (frame == nullptr) [[unlikely]]
    return SendStatus::queue_full;
  frame->length = frame->held_bytes = bytes;
  frame->flags = frame_whole;
  std::byte* const to = frame->data() + sizeof(FrameHeader);
  write_header(to, header, length);
  const bool is_copied = count == 1 ? guarded_copy(to + sizeof header, pieces->base, length)
                                    : PieceReader(pieces, count).read(to + sizeof header, length);
  return is_copied && protection.prepare(*frame) ? SendStatus::sent : SendStatus::inaccessible;
}

// Cuts a message into frames. `first`: the frames made so far, through `next`; for the pool, unless
// all are there.
SendStatus Sender::cut(const Connection& connection, const Message& message, bool in_place,
                       FrameBuffer*& first) noexcept {
  const auto& [header, pieces, count, length] = message;
  const FrameProtection& protection = connection.protection;
  const uint32_t frame_bytes = connection.send.frame_bytes();
  const uint32_t seal_bytes = protection.seal_bytes();
  const bool encrypts = seal_bytes != 0 && protection.encrypts();
  PieceReader payload(pieces, count);
  FrameBuffer** last = &first;
  uint32_t left = length;
  do {
    const uint32_t overhead = first == nullptr ? message_frame_overhead : sizeof(FrameHeader);
    uint32_t part = left;
    // A long message is one frame, even if the path has become narrower since it was cut to fit.
    if (part > frame_bytes - overhead && length <= longest_eager_bytes)
      part = frame_bytes - overhead;
    const uint32_t held_bytes = in_place ? overhead : overhead + part;
    const uint32_t sent_from_here = encrypts ? overhead + part : held_bytes;
    FrameBuffer* const frame = context_.sent.acquire(sent_from_here + seal_bytes);
    if (frame == nullptr) return SendStatus::queue_full;
    frame->length = frame->held_bytes = held_bytes;
    if (first == nullptr) {
      frame->flags = frame_first;
      write_header(frame->data() + sizeof(FrameHeader), header, length);
    }
    *last = frame;
    last = &frame->next;
    if (in_place) {
      frame->payload = pieces->base + (length - left);
      frame->length += part;
      if (protection.leaves_unchecked()) frame->flags |= frame_unchecked;
    } else if (part != 0 && !payload.read(frame->data() + overhead, part)) {
      return SendStatus::inaccessible;
    }
    if (!protection.prepare(*frame)) return SendStatus::inaccessible;
    left -= part;
    if (left == 0) frame->flags |= frame_last;
  } while (left != 0);
  return SendStatus::sent;
}

[[gnu::always_inline]] inline SendStatus Sender::append(Connection& connection,
                                                        const Message& message) noexcept {
  const auto& [header, pieces, count, length] = message;
  SendStatus status;
  if (join_last(connection, message, status)) return status;
  const bool in_place =
      (connection.protection.encrypts() || context_.link.properties().sends_from_anywhere) &&
      count == 1 && length >= in_place_min_bytes && payload_stays(header);
  FrameBuffer* first = nullptr;
  status = !in_place && message_frame_overhead + uint64_t{length} <= connection.send.frame_bytes()
               ? fill_frame(connection, message, first)
               : cut(connection, message, in_place, first);
  if (status != SendStatus::sent) {
    context_.sent.release_chain(first);
    return status;
  }
  connection.send.request_release(*first, in_place && (header.modes & data_stays) != 0);
  first->messages = (first->flags & frame_last) != 0 ? 1 : 0;
  while (first != nullptr) {
    FrameBuffer* const next = first->next;
    connection.send.window.append(first);
    first = next;
  }
  return SendStatus::sent;
}

bool Sender::acknowledge(Connection& connection, uint32_t acknowledged, uint8_t delay,
                         std::span<const uint64_t> selective, uint64_t now_ns) noexcept {
  SendWindow& window = connection.send.window;
  connection.silence.heard(now_ns);
  const SendWindow::Acknowledged result = window.acknowledge(
      acknowledged, selective, delay * PendingAcknowledgement::age_unit_ns, now_ns);
  context_.sent.release_chain(result.released);
  if (window.can_send() && !connection.replies.holds())
    transmitter_.transmit(connection, now_ns);
  else if (window.has_in_flight())
    connection.silence.await(now_ns);
  return result.valid;
}

// An acknowledgement names one probe. That of another path gets its own.
void Sender::note_probe(Connection& connection, uint32_t number, uint64_t now_ns) noexcept {
  ReceiveWindow& window = connection.receive.window;
  if (connection.acknowledges_soon &&
      LossDetector::path_of(number) != LossDetector::path_of(window.probe()))
    transmitter_.acknowledge(connection, now_ns);
  window.note_probe(number);
}

bool Sender::take_acknowledgement(Connection& connection, const InboundFrame& frame,
                                  const FrameHeader& header, uint64_t now_ns) noexcept {
  uint64_t words[1 + most_selective_words];
  words[0] = header.selective;
  size_t count = 1;
  if (header.type == FrameType::probe) note_probe(connection, header.sequence, now_ns);
  if (PartHeader part;
      header.type == FrameType::part && frame.length >= sizeof header + sizeof part) {
    std::memcpy(&part, frame.data + sizeof header, sizeof part);
    if (part.probe != 0) connection.receive.window.note_probe(part.probe);
  }
  if (header.type == FrameType::ack) {
    const size_t bytes = frame.length - sizeof header;
    if (bytes > most_selective_words * sizeof(uint64_t) || bytes % sizeof(uint64_t) != 0)
      return false;
    std::memcpy(words + 1, frame.data + sizeof header, bytes);
    count += bytes / sizeof(uint64_t);
    if (connection.send.window.take_answer(header.sequence))
      context_.timers.set(connection, now_ns);  // it is reported, and frames may go by it
  }
  return acknowledge(connection, header.acknowledged, header.ack_delay, {words, count}, now_ns);
}

}  // namespace lintel

#include "reliable/sender.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "util/guarded_memory.h"

namespace lintel {

namespace {

// Maximum number of bytes queued beyond the window: enough to continue while acknowledgements
// travel.
constexpr uint64_t queue_beyond_window_bytes = 128 * 1024;
constexpr uint32_t most_queued_frames = 2048;
// Number of unacknowledged frames from which on the sender looks for a deferred acknowledgement.
constexpr uint32_t looked_at_again_frames = 8;
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
         window.unsent_frames() < collected_frames && window.unsent_bytes() < collected_bytes;
}

// Minimum length of a payload that is sent from its place. Copying a shorter one costs less than
// waiting for its release.
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
  if (total > longest_eager_bytes) [[unlikely]] {
    if (total > connection.most_data_bytes) return SendStatus::inaccessible;
    if (message_frame_overhead + total > connection.frame_bytes) connection.send.note_long_frame();
  }
  const auto length = static_cast<uint32_t>(total);
  if ((header.flags & flag_unreliable) != 0 && header.kind == MessageKind::put &&
      message_frame_overhead + length <= connection.frame_bytes && !connection.send.can_send())
    return send_datagram(connection, header, pieces, count, length);

  const SendStatus status = queue(connection, header, pieces, count, length);
  const bool queued = status == SendStatus::sent;
  if (queued && collects(header, connection.send)) return status;
  const uint64_t now_ns = context_.settings.clock();
  if (queued && acknowledger_.holds(connection, header, now_ns)) return status;
  transmitter_.transmit(connection, now_ns);
  if (queued && is_acknowledgement(header))
    connection.habit.acknowledgement_went(context_.settings.clock());
  return status;
}

[[gnu::always_inline]] inline SendStatus Sender::queue(Connection& connection,
                                                       const MessageHeader& header,
                                                       const Piece* pieces, unsigned count,
                                                       uint32_t length) noexcept {
  if (connection.send.queued_frames() >= looked_at_again_frames) {
    received_.catch_up(connection);
    // A peer that does not acknowledge gets no more of the memory than is left for the others.
    if (!connection.send.empty() && connection.send.queued_bytes() > sent_.free_bytes())
      return SendStatus::queue_full;
  }
  if (!connection.send.empty() && (connection.send.queued_frames() >= most_queued_frames ||
                                   connection.send.queued_bytes() + length >
                                       connection.send.window_bytes() + queue_beyond_window_bytes))
    return SendStatus::queue_full;
  const SendStatus status = append(connection, header, pieces, count, length);
  // If no frame to this peer is on the way, only acknowledgements of other peers make room. A timer
  // tries again.
  if (status == SendStatus::queue_full)
    timers_.set(connection, context_.settings.clock() + no_buffer_retry_ns);
  return status;
}

// Sends one frame without state: a loss is not noticed.
SendStatus Sender::send_datagram(Connection& connection, const MessageHeader& header,
                                 const Piece* pieces, unsigned count, uint32_t length) noexcept {
  FrameBuffer* frame = nullptr;
  const SendStatus status = cut(connection, header, pieces, count, length, false, frame);
  if (status == SendStatus::sent)
    transmitter_.send_datagram(connection, *frame, context_.settings.clock());
  sent_.release_chain(frame);
  return status == SendStatus::queue_full ? SendStatus::sent : status;
}

// False: there is no frame that waits to be sent, or no room in it.
bool Sender::join_last(Connection& connection, const MessageHeader& header, const Piece* pieces,
                       unsigned count, uint32_t length, SendStatus& status) noexcept {
  FrameBuffer* const frame = connection.send.last_unsent();
  if (frame == nullptr || frame->messages == 0 || frame->messages == most_bundled ||
      frame->payload != nullptr || frame->encrypted || frame->sealed)
    return false;
  const uint32_t start = bundle_aligned(frame->length);
  const uint64_t end = uint64_t{start} + sizeof header + length;
  if (end > std::min(sent_.capacity_of(*frame) - connection.seal_bytes, connection.frame_bytes))
    return false;
  std::byte* const to = frame->data() + start;
  status = SendStatus::inaccessible;
  if (!PieceReader(pieces, count).read(to + sizeof header, length)) return true;
  status = SendStatus::sent;
  std::byte* const grown_from = frame->data() + frame->length;
  const auto grown = static_cast<uint32_t>(end) - frame->length;
  std::memset(grown_from, 0, start - frame->length);
  write_header(to, header, length);
  if (connection.seal_bytes == 0)
    frame->body_check = body_check(frame->body_check, grown_from, grown);
  frame->length += grown;
  frame->held_bytes += grown;
  ++frame->messages;
  if (connection.release_awaited) frame->flags |= frame_wants_ack;
  connection.release_awaited = false;
  connection.send.note_growth(grown);
  return true;
}

// `first`: the frames made so far, through `next`; for the pool, unless all are there.
SendStatus Sender::cut(const Connection& connection, const MessageHeader& header,
                       const Piece* pieces, unsigned count, uint32_t length, bool in_place,
                       FrameBuffer*& first) noexcept {
  PieceReader payload(pieces, count);
  FrameBuffer** last = &first;
  uint32_t left = length;
  do {
    const uint32_t overhead = first == nullptr ? message_frame_overhead : sizeof(FrameHeader);
    uint32_t part = left;
    // A long message is one frame, even if the path has become narrower since it was cut to fit.
    if (part > connection.frame_bytes - overhead && length <= longest_eager_bytes)
      part = connection.frame_bytes - overhead;
    const uint32_t held_bytes = in_place ? overhead : overhead + part;
    const uint32_t sent_from_here = connection.encrypts ? overhead + part : held_bytes;
    FrameBuffer* const frame = sent_.acquire(sent_from_here + connection.seal_bytes);
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
      if (connection.leaves_unchecked) frame->flags |= frame_unchecked;
    } else if (part != 0 && !payload.read(frame->data() + overhead, part)) {
      return SendStatus::inaccessible;
    }
    if (connection.seal_bytes == 0 ? !frame->compute_body_check(connection.send_seed)
                                   : in_place && !is_readable(frame->payload, part))
      return SendStatus::inaccessible;
    left -= part;
    if (left == 0) frame->flags |= frame_last;
  } while (left != 0);
  return SendStatus::sent;
}

[[gnu::always_inline]] inline SendStatus Sender::append(Connection& connection,
                                                        const MessageHeader& header,
                                                        const Piece* pieces, unsigned count,
                                                        uint32_t length) noexcept {
  SendStatus status;
  if (join_last(connection, header, pieces, count, length, status)) return status;
  const bool in_place = (connection.encrypts || context_.link.properties().sends_from_anywhere) &&
                        count == 1 && length >= in_place_min_bytes && payload_stays(header);
  FrameBuffer* first = nullptr;
  status = cut(connection, header, pieces, count, length, in_place, first);
  if (status != SendStatus::sent) {
    sent_.release_chain(first);
    return status;
  }
  // Memory that was sent from its place is in use until it has arrived, and its owner waits for
  // that. So the end of such a sequence of messages requests an acknowledgement at once.
  const bool awaited = in_place && (header.modes & data_stays) != 0;
  if (connection.release_awaited && !awaited) first->flags |= frame_wants_ack;
  connection.release_awaited = awaited;
  first->messages = (first->flags & frame_last) != 0 ? 1 : 0;
  while (first != nullptr) {
    FrameBuffer* const next = first->next;
    connection.send.append(first);
    first = next;
  }
  return SendStatus::sent;
}

}  // namespace lintel

// Several small messages in one frame: while the window is closed, and behind an acknowledgement that was held
// back for them (hold_back.cc). Message path.
#include <algorithm>
#include <cstring>

#include "reliable/piece_reader.h"
#include "reliable/reliable_transport.h"
#include "reliable/write_header.h"

namespace lintel {

// Puts the message into the frame that waits to be sent. Nothing: there is none, or no room in it.
std::optional<SendStatus> ReliableTransport::join_last_frame(Connection& connection,
                                                             const MessageHeader& header,
                                                             const Piece* pieces, unsigned count,
                                                             uint32_t length) noexcept {
  FrameBuffer* const frame = connection.send.last_unsent();
  if (frame == nullptr || frame->messages == 0 || frame->messages == most_bundled ||
      frame->payload != nullptr)
    return std::nullopt;
  const uint32_t start = bundle_aligned(frame->length);
  const uint64_t end = uint64_t{start} + sizeof header + length;
  if (end > std::min(send_pool_.capacity_of(*frame), connection.frame_bytes)) return std::nullopt;
  std::byte* const to = frame->data() + start;
  PieceReader payload(pieces, count);
  if (!payload.read(to + sizeof header, length)) return SendStatus::inaccessible;
  std::byte* const grown_from = frame->data() + frame->length;
  const auto grown = static_cast<uint32_t>(end) - frame->length;
  std::memset(grown_from, 0, start - frame->length);
  write_header(to, header, length);
  frame->body_check = body_check(frame->body_check, grown_from, grown);
  frame->length += grown;
  frame->held_bytes += grown;
  ++frame->messages;
  if (connection.release_awaited) frame->flags |= frame_wants_ack;
  connection.release_awaited = false;
  connection.send.note_growth(grown);
  return SendStatus::sent;
}

// Cuts the body of a frame into its messages; 0: it makes no sense. Nothing is handed up of a frame whose end
// makes no sense.
unsigned ReliableTransport::unbundle(const std::byte* body, uint32_t length,
                                     MessageHeader (&headers)[most_bundled]) const noexcept {
  for (unsigned count = 0; count < most_bundled;) {
    MessageHeader& header = headers[count++];
    if (length < sizeof header) return 0;
    std::memcpy(&header, body, sizeof header);
    if (!is_plausible(header) || header.link_word > length - sizeof header) return 0;
    const auto end = static_cast<uint32_t>(sizeof header + header.link_word);
    if (end == length) return count;
    const uint32_t next = bundle_aligned(end);
    if (next >= length) return 0;
    body += next;
    length -= next;
  }
  return 0;
}

}  // namespace lintel

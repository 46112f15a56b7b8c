#include "reliable/data_receiver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "util/lock.h"

namespace lintel {

namespace {
constexpr uint64_t share_of_peer_timeout = 4;

// Returns the distance from the header of a message to the header of the next one.
uint32_t stride(const MessageHeader& header) noexcept {
  return bundle_aligned(static_cast<uint32_t>(sizeof header + header.link_word));
}
}  // namespace

// The frames of a peer may be longer than those that can be sent to it.
MessageAssembler::MessageAssembler(const ReliableContext& context, MessageBatch& batch,
                                   ConnectionCloser& closer) noexcept
    : context_(context),
      longest_data_(std::max(context.link.mtu() - message_frame_overhead, longest_eager_bytes)),
      stall_timeout_ns_(context.settings.peer_timeout_ns / share_of_peer_timeout),
      batch_(batch),
      closer_(closer) {}

inline bool MessageAssembler::is_plausible(const MessageHeader& header) const noexcept {
  return static_cast<unsigned>(header.kind) - 1u < message_kinds - 1u &&
         (header.flags & ~flag_known) == 0 &&
         header.link_word <=
             (header.kind == MessageKind::data ? longest_data_ : longest_eager_bytes);
}

// Divides the body of a frame into its messages; 0: malformed. A frame with a malformed end
// delivers none of its messages.
inline unsigned MessageAssembler::parse(const std::byte* body, uint32_t length,
                                        MessageHeader (&headers)[most_bundled]) const noexcept {
  for (unsigned count = 0; count < most_bundled;) {
    MessageHeader& header = headers[count++];
    if (length < sizeof header) return 0;
    std::memcpy(&header, body, sizeof header);
    if (!is_plausible(header) || header.link_word > length - sizeof header) return 0;
    if (sizeof header + header.link_word == length) return count;
    const uint32_t next = stride(header);
    if (next >= length) return 0;
    body += next;
    length -= next;
  }
  return 0;
}

bool MessageAssembler::is_part(uint8_t flags, const std::byte* body, uint32_t length,
                               MessageHeader& header) const noexcept {
  if ((flags & frame_whole) != frame_whole || length < sizeof header) return false;
  std::memcpy(&header, body, sizeof header);
  return header.kind == MessageKind::data && (header.flags & flag_last) == 0 &&
         is_plausible(header) && header.link_word == length - sizeof header;
}

MessageAssembler::Taken MessageAssembler::take(Connection& connection, uint8_t flags,
                                               const std::byte* body, uint32_t length,
                                               FrameBuffer* held, uint64_t now_ns) noexcept {
  if ((flags & frame_whole) != frame_whole) {
    const Taken taken = take_fragment(connection, flags, body, length, now_ns);
    if (taken == Taken::yes && held != nullptr) context_.received.release(held);
    return taken;
  }
  return connection.receive.half.buffer == nullptr && take_whole(connection, body, length, held)
             ? Taken::yes
             : Taken::malformed;
}

bool MessageAssembler::take_whole(Connection& connection, const std::byte* body, uint32_t length,
                                  FrameBuffer* held) noexcept {
  if (length < sizeof(MessageHeader)) return false;
  MessageHeader only;
  std::memcpy(&only, body, sizeof only);
  if (sizeof only + only.link_word == length && is_plausible(only)) [[likely]] {
    batch_.add(connection, only, body + sizeof only, held, &context_.received);
    return true;
  }
  return take_bundle(connection, body, length, held);
}

bool MessageAssembler::take_bundle(Connection& connection, const std::byte* body, uint32_t length,
                                   FrameBuffer* held) noexcept {
  MessageHeader headers[most_bundled];
  const unsigned count = parse(body, length, headers);
  for (unsigned i = 0; i < count; ++i) {
    batch_.add(connection, headers[i], body + sizeof(MessageHeader),
               i + 1 == count ? held : nullptr, &context_.received);
    body += stride(headers[i]);
  }
  return count != 0;
}

MessageAssembler::Taken MessageAssembler::take_fragment(Connection& connection, uint8_t flags,
                                                        const std::byte* body, uint32_t length,
                                                        uint64_t now_ns) noexcept {
  HalfMessage& half = connection.receive.half;
  MessageHeader header;
  if ((flags & frame_first) != 0) {
    if (half.buffer != nullptr || length < sizeof header) return Taken::malformed;
    std::memcpy(&header, body, sizeof header);
    if (!is_plausible(header) || header.link_word > longest_eager_bytes) return Taken::malformed;
    if (!begin_message(connection, sizeof header + header.link_word, now_ns)) return Taken::no_room;
  }
  if (half.buffer == nullptr || !context_.reassembly.append(half, body, length, now_ns))
    return Taken::malformed;
  if ((flags & frame_last) == 0) return Taken::yes;
  FrameBuffer* const whole = context_.reassembly.finish(half);
  if (whole == nullptr) return Taken::malformed;
  std::memcpy(&header, whole->data(), sizeof header);
  batch_.add(connection, header, whole->data() + sizeof header, whole, &context_.reassembly.pool());
  return Taken::yes;
}

// When all buffers are in use, a connection whose message has stopped arriving fails. Its frames
// were acknowledged, so the message cannot be received again.
bool MessageAssembler::begin_message(Connection& connection, uint32_t bytes,
                                     uint64_t now_ns) noexcept {
  connection.receive.half.owner = &connection;
  if (context_.reassembly.begin(connection.receive.half, bytes, now_ns)) return true;
  const HalfMessage* const oldest = context_.reassembly.oldest();
  if (oldest == nullptr || elapsed_ns(oldest->progress_ns, now_ns) < stall_timeout_ns_)
    return false;
  closer_.fail(*oldest->owner, "it stopped in the middle of a message, and memory was short");
  return context_.reassembly.begin(connection.receive.half, bytes, now_ns);
}

void DataReceiver::take(Connection& connection, const InboundFrame& frame,
                        const FrameHeader& header, uint64_t now_ns) noexcept {
  const Handled handled = take_next(connection, frame, header, now_ns);
  if (handled == Handled::yes) [[likely]]
    return;
  if (handled == Handled::malformed)
    context_.counters.malformed.increment();
  else
    take_rare(connection, frame, header, now_ns);
}

// The common case: whole messages, the next ones in order. Data and acknowledgement are handled
// with the lock taken once.
inline DataReceiver::Handled DataReceiver::take_next(Connection& connection,
                                                     const InboundFrame& frame,
                                                     const FrameHeader& header,
                                                     uint64_t now_ns) noexcept {
  // Messages must not be delivered while the lock is held.
  batch_.make_room(connection, most_bundled);
  const LockGuard guard(connection.lock);
  if (!sender_.take_acknowledgement(connection, header, now_ns)) return Handled::malformed;
  if (header.flags != frame_whole || header.sequence != connection.receive.window.expected() ||
      connection.receive.window.has_kept() || connection.receive.half.buffer != nullptr ||
      !assembler_.take_whole(connection, frame.data + sizeof header, frame.length - sizeof header))
    return Handled::not_yet;
  connection.receive.window.advance();
  acknowledger_.note_arrival(connection, frame.length, now_ns);
  return Handled::yes;
}

// Counts those that are not, and acknowledges what has to be acknowledged at once.
bool DataReceiver::is_new(Connection& connection, const FrameHeader& header,
                          ReceiveWindow::Place place) noexcept {
  // The sender of a duplicate does not know that it came.
  const bool is_duplicate = place == ReceiveWindow::Place::duplicate;
  if ((header.flags & frame_wants_ack) != 0 || is_duplicate)
    acknowledger_.acknowledge_soon(connection);
  if (is_duplicate) context_.counters.duplicates.increment();
  if (place == ReceiveWindow::Place::beyond) context_.counters.dropped_for_room.increment();
  return !is_duplicate && place != ReceiveWindow::Place::beyond;
}

void DataReceiver::take_rare(Connection& connection, const InboundFrame& frame,
                             const FrameHeader& header, uint64_t now_ns) noexcept {
  const ReceiveWindow::Place place = connection.receive.window.place_of(header.sequence);
  if (!is_new(connection, header, place)) return;
  if (place == ReceiveWindow::Place::out_of_order) return keep(connection, frame, header, now_ns);
  // It may have come before and found no room.
  if (take_kept(connection, now_ns)) return;
  const Taken taken = assembler_.take(connection, header.flags, frame.data + sizeof header,
                                      frame.length - sizeof header, nullptr, now_ns);
  go_on_after(connection, taken, nullptr, frame.length, now_ns);
}

bool DataReceiver::take_kept(Connection& connection, uint64_t now_ns) noexcept {
  if (!connection.receive.window.has_expected()) return false;
  FrameBuffer* kept = nullptr;
  {
    const LockGuard guard(connection.lock);
    kept = connection.receive.window.take_expected();
  }
  const uint32_t length = kept->length;
  go_on_after(connection, take_frame(connection, kept, now_ns), kept, length, now_ns);
  return true;
}

DataReceiver::Taken DataReceiver::take_frame(Connection& connection, FrameBuffer* kept,
                                             uint64_t now_ns) noexcept {
  if (kept->handed_up) {
    context_.received.release(kept);
    return Taken::yes;
  }
  return assembler_.take(connection, kept->flags, kept->data() + sizeof(FrameHeader),
                         kept->length - sizeof(FrameHeader), kept, now_ns);
}

// After the expected frame, of `length` bytes: kept ones that follow it. `kept`: the
// buffer of the expected frame, if it has one.
void DataReceiver::go_on_after(Connection& connection, Taken taken, FrameBuffer* kept,
                               uint32_t length, uint64_t now_ns) noexcept {
  while (taken == Taken::yes) {
    {
      const LockGuard guard(connection.lock);
      connection.receive.window.advance();
      kept = connection.receive.window.take_expected();
      if (kept == nullptr) {
        acknowledger_.note_arrival(connection, length, now_ns);
        return;
      }
    }
    taken = take_frame(connection, kept, now_ns);
  }
  if (taken == Taken::malformed) {
    if (kept != nullptr) context_.received.release(kept);
    context_.counters.malformed.increment();
    closer_.fail(connection, "it sent a malformed message");
    return;
  }
  context_.counters.dropped_for_room.increment();
  if (kept == nullptr) return;  // it will be sent again
  // It was acknowledged when it was kept: only the timer tries again.
  const LockGuard guard(connection.lock);
  connection.receive.window.keep(kept);
  context_.timers.set(connection, now_ns + room_retry_ns);
}

// A correct sender keeps to its window. A peer gets at most half of the free memory, so that others
// get some.
uint64_t DataReceiver::room_to_keep(const Connection& connection) const noexcept {
  const uint64_t most_bytes = std::min(context_.link.receive_capacity_bytes() + context_.link.mtu(),
                                       context_.received.free_bytes());
  return most_bytes - std::min(most_bytes, connection.receive.window.kept_bytes());
}

// Keeps a frame that is ahead of missing ones. Parts of long messages contain their place and are
// delivered at once; only their sequence number is kept.
void DataReceiver::keep(Connection& connection, const InboundFrame& frame,
                        const FrameHeader& header, uint64_t now_ns) noexcept {
  context_.counters.out_of_order.increment();
  acknowledger_.acknowledge_soon(connection);  // shows the sender that something is missing
  const std::byte* const body = frame.data + sizeof header;
  MessageHeader part;
  const bool is_part = assembler_.is_part(header.flags, body, frame.length - sizeof header, part);
  const uint32_t kept_bytes = is_part ? sizeof header : frame.length;
  FrameBuffer* const kept =
      kept_bytes > room_to_keep(connection) ? nullptr : context_.received.acquire(kept_bytes);
  if (kept == nullptr) {
    context_.counters.dropped_for_room.increment();
    return;
  }
  std::memcpy(kept->data(), frame.data, kept_bytes);
  kept->sequence = header.sequence;
  kept->flags = header.flags;
  kept->handed_up = is_part;
  if (is_part) batch_.add(connection, part, body + sizeof part);
  const LockGuard guard(connection.lock);
  connection.receive.window.keep(kept);
  context_.timers.set(connection, now_ns + context_.settings.keepalive_ns());
}

// A frame that is whole is taken like one that was kept.
void DataReceiver::take_part(Connection& connection, const InboundFrame& frame,
                             const FrameHeader& header, uint64_t now_ns) noexcept {
  const ReceiveWindow::Place place = connection.receive.window.place_of(header.sequence);
  if (!is_new(connection, header, place)) return;
  const bool is_next = place == ReceiveWindow::Place::next;
  // It may have come as a whole and found no room.
  if (is_next && take_kept(connection, now_ns)) return;
  // The next frame releases the frames kept behind it.
  const uint64_t room = is_next ? UINT64_MAX : room_to_keep(connection);
  FrameParts& parts = connection.receive.parts;
  const FrameParts::Taken taken =
      parts.take(context_.received, longest_frame_, header, frame.data + sizeof header,
                 static_cast<uint32_t>(frame.length - sizeof header), room);
  if (taken == FrameParts::Taken::no_room) context_.counters.dropped_for_room.increment();
  if (taken == FrameParts::Taken::malformed) context_.counters.malformed.increment();
  if (parts.is_empty()) return;
  {
    const LockGuard guard(connection.lock);
    context_.timers.set(connection, now_ns + context_.settings.keepalive_ns());
    if (taken == FrameParts::Taken::whole) connection.receive.window.keep(parts.take_whole());
  }
  if (taken == FrameParts::Taken::whole && !take_kept(connection, now_ns)) {
    context_.counters.out_of_order.increment();
    acknowledger_.acknowledge_soon(connection);
  }
}

}  // namespace lintel

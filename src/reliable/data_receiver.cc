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
MessageAssembler::MessageAssembler(const ReliableContext& context, FramePool& early,
                                   Reassembly& reassembly, MessageBatch& batch,
                                   ConnectionCloser& closer) noexcept
    : longest_data_(std::max(context.link.mtu() - message_frame_overhead, longest_eager_bytes)),
      patience_ns_(context.settings.peer_timeout_ns / share_of_peer_timeout),
      early_(early),
      reassembly_(reassembly),
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
    if (taken == Taken::yes && held != nullptr) early_.release(held);
    return taken;
  }
  return connection.half.buffer == nullptr && take_whole(connection, body, length, held)
             ? Taken::yes
             : Taken::malformed;
}

bool MessageAssembler::take_whole(Connection& connection, const std::byte* body, uint32_t length,
                                  FrameBuffer* held) noexcept {
  MessageHeader headers[most_bundled];
  const unsigned count = parse(body, length, headers);
  for (unsigned i = 0; i < count; ++i) {
    batch_.add(connection, headers[i], body + sizeof(MessageHeader),
               i + 1 == count ? held : nullptr, &early_);
    body += stride(headers[i]);
  }
  return count != 0;
}

MessageAssembler::Taken MessageAssembler::take_fragment(Connection& connection, uint8_t flags,
                                                        const std::byte* body, uint32_t length,
                                                        uint64_t now_ns) noexcept {
  HalfMessage& half = connection.half;
  MessageHeader header;
  if ((flags & frame_first) != 0) {
    if (half.buffer != nullptr || length < sizeof header) return Taken::malformed;
    std::memcpy(&header, body, sizeof header);
    if (!is_plausible(header) || header.link_word > longest_eager_bytes) return Taken::malformed;
    if (!begin_message(connection, sizeof header + header.link_word, now_ns)) return Taken::no_room;
  }
  if (half.buffer == nullptr || !reassembly_.append(half, body, length, now_ns))
    return Taken::malformed;
  if ((flags & frame_last) == 0) return Taken::yes;
  FrameBuffer* const whole = reassembly_.finish(half);
  if (whole == nullptr) return Taken::malformed;
  std::memcpy(&header, whole->data(), sizeof header);
  batch_.add(connection, header, whole->data() + sizeof header, whole, &reassembly_.pool());
  return Taken::yes;
}

// When all buffers are in use, a connection whose message has stopped arriving fails. Its frames
// were acknowledged, so the message cannot be received again.
bool MessageAssembler::begin_message(Connection& connection, uint32_t bytes,
                                     uint64_t now_ns) noexcept {
  connection.half.owner = &connection;
  if (reassembly_.begin(connection.half, bytes, now_ns)) return true;
  const HalfMessage* const oldest = reassembly_.oldest();
  if (oldest == nullptr || elapsed_ns(oldest->progress_ns, now_ns) < patience_ns_) return false;
  closer_.fail(*oldest->owner, "it stopped in the middle of a message, and memory was short");
  return reassembly_.begin(connection.half, bytes, now_ns);
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
  if (!received_.take_or_defer(connection, header, now_ns)) return Handled::malformed;
  if (header.flags != frame_whole || header.sequence != connection.receive.expected() ||
      connection.receive.has_early() || connection.half.buffer != nullptr ||
      !assembler_.take_whole(connection, frame.data + sizeof header, frame.length - sizeof header))
    return Handled::not_yet;
  connection.receive.advance();
  acknowledger_.note_arrival(connection, frame.length, now_ns);
  return Handled::yes;
}

void DataReceiver::take_rare(Connection& connection, const InboundFrame& frame,
                             const FrameHeader& header, uint64_t now_ns) noexcept {
  if ((header.flags & frame_wants_ack) != 0) acknowledger_.acknowledge_soon(connection);
  switch (connection.receive.place_of(header.sequence)) {
    case ReceiveWindow::Place::next:
      break;
    case ReceiveWindow::Place::early:
      keep(connection, frame, header, now_ns);
      return;
    case ReceiveWindow::Place::duplicate:
      context_.counters.duplicates.increment();
      acknowledger_.acknowledge_soon(connection);  // the acknowledgement may have been lost
      return;
    case ReceiveWindow::Place::beyond:
      context_.counters.dropped_for_room.increment();
      return;
  }
  // The frame may have come early, and its message may have found no room.
  if (take_kept(connection, now_ns)) return;
  const Taken taken = assembler_.take(connection, header.flags, frame.data + sizeof header,
                                      frame.length - sizeof header, nullptr, now_ns);
  go_on_after(connection, taken, nullptr, frame.length, now_ns);
}

bool DataReceiver::take_kept(Connection& connection, uint64_t now_ns) noexcept {
  if (!connection.receive.has_expected()) return false;
  FrameBuffer* kept = nullptr;
  {
    const LockGuard guard(connection.lock);
    kept = connection.receive.take_expected();
  }
  const uint32_t length = kept->length;
  go_on_after(connection, take_early(connection, kept, now_ns), kept, length, now_ns);
  return true;
}

DataReceiver::Taken DataReceiver::take_early(Connection& connection, FrameBuffer* early,
                                             uint64_t now_ns) noexcept {
  if (early->handed_up) {
    early_.release(early);
    return Taken::yes;
  }
  return assembler_.take(connection, early->flags, early->data() + sizeof(FrameHeader),
                         early->length - sizeof(FrameHeader), early, now_ns);
}

// After the expected frame, of `length` bytes: those that came early and follow it. `early`: the
// buffer of the expected frame, if it has one.
void DataReceiver::go_on_after(Connection& connection, Taken taken, FrameBuffer* early,
                               uint32_t length, uint64_t now_ns) noexcept {
  while (taken == Taken::yes) {
    {
      const LockGuard guard(connection.lock);
      connection.receive.advance();
      early = connection.receive.take_expected();
      if (early == nullptr) {
        acknowledger_.note_arrival(connection, length, now_ns);
        return;
      }
    }
    taken = take_early(connection, early, now_ns);
  }
  if (taken == Taken::malformed) {
    if (early != nullptr) early_.release(early);
    context_.counters.malformed.increment();
    closer_.fail(connection, "it sent a malformed message");
    return;
  }
  context_.counters.dropped_for_room.increment();
  if (early == nullptr) return;  // the sender repeats the frame
  // The frame was acknowledged when it came early: only the timer tries again.
  const LockGuard guard(connection.lock);
  connection.receive.keep(early);
  timers_.set(connection, now_ns + room_retry_ns);
}

// A correct sender keeps to its window. A peer gets at most half of the free memory, so that others
// get some.
uint64_t DataReceiver::room_for_early(const Connection& connection) const noexcept {
  const uint64_t most_bytes =
      std::min(context_.link.receive_capacity_bytes() + context_.link.mtu(), early_.free_bytes());
  return most_bytes - std::min(most_bytes, connection.receive.early_bytes());
}

// Keeps a frame that is ahead of missing ones. Parts of long messages contain their place and are
// delivered at once; only their sequence number is kept.
void DataReceiver::keep(Connection& connection, const InboundFrame& frame,
                        const FrameHeader& header, uint64_t now_ns) noexcept {
  context_.counters.early.increment();
  acknowledger_.acknowledge_soon(connection);  // shows the sender that something is missing
  const std::byte* const body = frame.data + sizeof header;
  MessageHeader part;
  const bool is_part = assembler_.is_part(header.flags, body, frame.length - sizeof header, part);
  const uint32_t kept_bytes = is_part ? sizeof header : frame.length;
  FrameBuffer* const kept =
      kept_bytes > room_for_early(connection) ? nullptr : early_.acquire(kept_bytes);
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
  connection.receive.keep(kept);
  timers_.set(connection, now_ns + context_.settings.longest_silence_ns());
}

// Takes a part of a frame. A frame of which all parts have come is taken like one that came early.
void DataReceiver::take_part(Connection& connection, const InboundFrame& frame,
                             const FrameHeader& header, uint64_t now_ns) noexcept {
  if ((header.flags & frame_wants_ack) != 0) acknowledger_.acknowledge_soon(connection);
  uint64_t room = UINT64_MAX;  // unlimited for the next frame: after it early ones are released
  switch (connection.receive.place_of(header.sequence)) {
    case ReceiveWindow::Place::next:
      // The frame may have come as a whole, and its message may have found no room.
      if (take_kept(connection, now_ns)) return;
      break;
    case ReceiveWindow::Place::early:
      room = room_for_early(connection);
      break;
    case ReceiveWindow::Place::duplicate:
      context_.counters.duplicates.increment();
      acknowledger_.acknowledge_soon(connection);
      return;
    case ReceiveWindow::Place::beyond:
      context_.counters.dropped_for_room.increment();
      return;
  }
  const FrameParts::Taken taken = parts_.take(connection.parts, header, frame.data + sizeof header,
                                              frame.length - sizeof header, room);
  if (taken == FrameParts::Taken::no_room) context_.counters.dropped_for_room.increment();
  if (taken == FrameParts::Taken::malformed) context_.counters.malformed.increment();
  if (connection.parts == nullptr) return;
  {
    const LockGuard guard(connection.lock);
    timers_.set(connection, now_ns + context_.settings.longest_silence_ns());
    if (taken == FrameParts::Taken::whole)
      connection.receive.keep(std::exchange(connection.parts, nullptr));
  }
  if (taken == FrameParts::Taken::whole && !take_kept(connection, now_ns)) {
    context_.counters.early.increment();
    acknowledger_.acknowledge_soon(connection);
  }
}

}  // namespace lintel

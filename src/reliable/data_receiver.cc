#include "reliable/data_receiver.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace lintel {

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
  // Nothing may be handed up while the lock is held.
  batch_.make_room(connection, most_bundled);
  const std::lock_guard guard(connection.lock);
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
      acknowledger_.acknowledge_soon(connection);  // the sender does not know that it came
      return;
    case ReceiveWindow::Place::beyond:
      context_.counters.dropped_for_room.increment();
      return;
  }
  // It may have come early and found no room.
  if (take_kept(connection, now_ns)) return;
  const Taken taken = assembler_.take(connection, header.flags, frame.data + sizeof header,
                                      frame.length - sizeof header, nullptr, now_ns);
  go_on_after(connection, taken, nullptr, frame.length, now_ns);
}

bool DataReceiver::take_kept(Connection& connection, uint64_t now_ns) noexcept {
  if (!connection.receive.has_expected()) return false;
  FrameBuffer* kept = nullptr;
  {
    const std::lock_guard guard(connection.lock);
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
      const std::lock_guard guard(connection.lock);
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
    closer_.fail(connection, "it sent a message that makes no sense");
    return;
  }
  context_.counters.dropped_for_room.increment();
  if (early == nullptr) return;  // it will be sent again
  // It was acknowledged when it came early: only the timer tries again.
  const std::lock_guard guard(connection.lock);
  connection.receive.keep(early);
  timers_.set(connection, now_ns + room_retry_ns);
}

// A frame that is ahead of missing ones. Parts of long messages name their place and are handed up
// at once; only their number is kept.
void DataReceiver::keep(Connection& connection, const InboundFrame& frame,
                        const FrameHeader& header, uint64_t now_ns) noexcept {
  context_.counters.early.increment();
  acknowledger_.acknowledge_soon(connection);  // tells the sender that something is missing
  const std::byte* const body = frame.data + sizeof header;
  MessageHeader part;
  const bool is_part = assembler_.is_part(header.flags, body, frame.length - sizeof header, part);
  const uint32_t kept_bytes = is_part ? sizeof header : frame.length;
  // A correct sender keeps to its window. A peer gets at most half of the free memory, so that
  // others get some.
  const uint64_t most_bytes =
      std::min(context_.link.receive_capacity_bytes() + context_.link.mtu(), early_.free_bytes());
  FrameBuffer* const kept = connection.receive.early_bytes() + kept_bytes > most_bytes
                                ? nullptr
                                : early_.acquire(kept_bytes);
  if (kept == nullptr) {
    context_.counters.dropped_for_room.increment();
    return;
  }
  std::memcpy(kept->data(), frame.data, kept_bytes);
  kept->sequence = header.sequence;
  kept->flags = header.flags;
  kept->handed_up = is_part;
  if (is_part) batch_.add(connection, part, body + sizeof part);
  const std::lock_guard guard(connection.lock);
  connection.receive.keep(kept);
  timers_.set(connection, now_ns + context_.settings.longest_silence_ns());
}

}  // namespace lintel

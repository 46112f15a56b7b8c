// From frames to messages, and up to the sink in bursts. Message path; the poller, no lock held.
//
// A message of one frame is handed up where the link put it: its payload is copied once, by the core,
// to its final place. Only eager messages longer than a frame are put together in a buffer first.
#include <cstring>

#include "reliable/reliable_transport.h"
#include "util/peer_order.h"

namespace lintel {

// The frames of a peer may be longer than those that can be sent to it.
bool ReliableTransport::is_plausible(const MessageHeader& header) const noexcept {
  const unsigned kind = static_cast<unsigned>(header.kind);
  const uint32_t most =
      header.kind == MessageKind::data ? link_->mtu() - message_frame_overhead : 0;
  return kind - 1u < message_kinds - 1u && (header.flags & ~flag_known) == 0 &&
         header.link_word <= std::max(most, max_eager_bytes);
}

ReliableTransport::Taken ReliableTransport::take_frame(MessageSink& sink, Connection& connection,
                                                       uint8_t flags, const std::byte* body,
                                                       uint32_t length, FrameBuffer* held,
                                                       uint64_t now) noexcept {
  if ((flags & frame_whole) != frame_whole) {
    const Taken taken = take_fragment(sink, connection, flags, body, length, now);
    if (taken == Taken::yes && held != nullptr) receive_pool_.release(held);
    return taken;
  }
  if (connection.half.buffer != nullptr) return Taken::malformed;
  return take_messages(sink, connection, body, length, held);
}

// Whole messages in one frame, numbered or not.
ReliableTransport::Taken ReliableTransport::take_messages(MessageSink& sink, Connection& connection,
                                                          const std::byte* body, uint32_t length,
                                                          FrameBuffer* held) noexcept {
  MessageHeader headers[most_bundled];
  const unsigned count = unbundle(body, length, headers);
  if (count == 0) return Taken::malformed;
  for (unsigned i = 0; i < count; ++i) {
    const MessageHeader& header = headers[i];
    add_to_batch(sink, connection, header, body + sizeof header, header.link_word,
                 i + 1 == count ? held : nullptr, &receive_pool_);
    body += bundle_aligned(static_cast<uint32_t>(sizeof header + header.link_word));
  }
  return Taken::yes;
}

// A frame that is nothing but one part of a long message, and not its end.
bool ReliableTransport::is_part_of_long_message(uint8_t flags, const std::byte* body,
                                                uint32_t length,
                                                MessageHeader& header) const noexcept {
  if ((flags & frame_whole) != frame_whole || length < sizeof header) return false;
  std::memcpy(&header, body, sizeof header);
  return header.kind == MessageKind::data && (header.flags & flag_last) == 0 &&
         is_plausible(header) && header.link_word == length - sizeof header;
}

ReliableTransport::Taken ReliableTransport::take_fragment(MessageSink& sink, Connection& connection,
                                                          uint8_t flags, const std::byte* body,
                                                          uint32_t length, uint64_t now) noexcept {
  HalfMessage& half = connection.half;
  MessageHeader header;
  if ((flags & frame_first) != 0) {
    if (length < sizeof header || half.buffer != nullptr) return Taken::malformed;
    std::memcpy(&header, body, sizeof header);
    if (!is_plausible(header) || header.link_word > max_eager_bytes) return Taken::malformed;
    if (!begin_long_message(sink, connection, sizeof header + header.link_word, now))
      return Taken::no_room;
  }
  if (half.buffer == nullptr || !reassembly_.append(half, body, length, now))
    return Taken::malformed;
  if ((flags & frame_last) == 0) return Taken::yes;
  FrameBuffer* const whole = reassembly_.finish(half);
  if (whole == nullptr) return Taken::malformed;
  std::memcpy(&header, whole->data(), sizeof header);
  add_to_batch(sink, connection, header, whole->data() + sizeof header, header.link_word, whole,
               &reassembly_.pool());
  return Taken::yes;
}

// When all buffers are in use, a connection whose message has stopped arriving fails for this one. Its
// frames were acknowledged, so that the message cannot be received again.
bool ReliableTransport::begin_long_message(MessageSink& sink, Connection& connection,
                                           uint32_t bytes, uint64_t now) noexcept {
  connection.half.owner = &connection;
  if (reassembly_.begin(connection.half, bytes, now)) return true;
  const HalfMessage* const oldest = reassembly_.oldest();
  if (oldest == nullptr || elapsed_ns(oldest->progress_ns, now) < settings_.peer_timeout_ns / 4)
    return false;
  fail(sink, *oldest->owner, "it stopped in the middle of a message, and memory was short");
  return reassembly_.begin(connection.half, bytes, now);
}

void ReliableTransport::add_to_batch(MessageSink& sink, Connection& connection,
                                     const MessageHeader& header, const std::byte* payload,
                                     uint32_t length, FrameBuffer* held,
                                     FramePool* held_from) noexcept {
  if (batch_.connection != &connection || batch_.count == delivery_burst) deliver_batch(sink);
  batch_.connection = &connection;
  batch_.messages[batch_.count++] = {header, payload, length};
  if (held == nullptr) return;
  batch_.held[batch_.held_count] = held;
  batch_.held_from[batch_.held_count++] = held_from;
}

void ReliableTransport::announce(MessageSink& sink, Connection& connection) noexcept {
  if (connection.announced) return;
  connection.announced = true;
  void* const context = sink.on_new_link(connection);
  std::atomic_ref<void*> stored(connection.context);
  if (stored.load(std::memory_order_acquire) != context)
    stored.store(context, std::memory_order_release);
}

void ReliableTransport::deliver_batch(MessageSink& sink) noexcept {
  if (batch_.count == 0) return;
  announce(sink, *batch_.connection);
  note_received();
  sink.on_messages(*batch_.connection, batch_.messages, batch_.count);
  handed_up_ += batch_.count;
  for (unsigned i = 0; i < batch_.held_count; ++i) batch_.held_from[i]->release(batch_.held[i]);
  batch_.connection = nullptr;
  batch_.count = 0;
  batch_.held_count = 0;
}

}  // namespace lintel

#include "reliable/message_assembler.h"

#include <algorithm>
#include <cstring>

namespace lintel {

namespace {
constexpr uint64_t share_of_peer_timeout = 4;

// Where the message behind that one begins, from its header on.
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

}  // namespace lintel

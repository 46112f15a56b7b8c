// Makes messages for the batch from the bodies of frames, which may contain anything. A message of
// one frame stays in the buffer of the link: the core copies its payload once, to its final place.
// Only eager messages longer than a frame are first put together in a buffer. Message path; the
// poller.
#pragma once

#include "reliable/connection_closer.h"

namespace lintel {

class MessageAssembler {
 public:
  enum class Taken : uint8_t { yes, no_room, malformed };

  // `early`: of the buffers that are given to take().
  MessageAssembler(const ReliableContext& context, FramePool& early, Reassembly& reassembly,
                   MessageBatch& batch, ConnectionCloser& closer) noexcept;

  // The body of the next numbered frame. `held`: its buffer, if that is not the link's; taken over
  // on yes.
  [[nodiscard]] Taken take(Connection& connection, uint8_t flags, const std::byte* body,
                           uint32_t length, FrameBuffer* held, uint64_t now_ns) noexcept;
  // The body of a frame that holds whole messages, numbered or not. False: malformed. The lock of
  // the connection may be held if the batch has room for most_bundled.
  [[nodiscard]] bool take_whole(Connection& connection, const std::byte* body, uint32_t length,
                                FrameBuffer* held = nullptr) noexcept;
  // Whether a body is nothing but one part of a long message, and not its end.
  [[nodiscard]] bool is_part(uint8_t flags, const std::byte* body, uint32_t length,
                             MessageHeader& header) const noexcept;

 private:
  bool is_plausible(const MessageHeader& header) const noexcept;
  unsigned parse(const std::byte* body, uint32_t length,
                 MessageHeader (&headers)[most_bundled]) const noexcept;
  Taken take_fragment(Connection& connection, uint8_t flags, const std::byte* body, uint32_t length,
                      uint64_t now_ns) noexcept;
  bool begin_message(Connection& connection, uint32_t bytes, uint64_t now_ns) noexcept;

  const uint32_t longest_data_;
  // A message that has made no progress for so long may lose its buffer.
  const uint64_t patience_ns_;
  FramePool& early_;
  Reassembly& reassembly_;
  MessageBatch& batch_;
  ConnectionCloser& closer_;
};

}  // namespace lintel

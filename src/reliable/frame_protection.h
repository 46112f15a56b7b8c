// How both ends of a connection tell its frames from others: by checks that are seeded with the
// numbers of the connection, or by seals (frame_seal.h). Message path. The lock of the connection
// is held, except for open_frame(), which is the poller's.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "reliable/frame.h"
#include "reliable/frame_pool.h"
#include "reliable/frame_seal.h"
#include "transport/packet_link.h"
#include "util/assert.h"

namespace lintel {

class FrameProtection {
 public:
  static constexpr unsigned most_pieces = 3;  // of a frame: what it holds, the payload, the tag

  // Connection path. The numbers are those of the connection, ours and the peer's. `channel`: null:
  // frames carry checks. `leaves_unchecked`: both sides agree to frame_unchecked.
  void open(uint64_t number, uint64_t peer_number, std::unique_ptr<SecureChannel> channel,
            bool leaves_unchecked) noexcept {
    LINTEL_ASSERT(channel == nullptr || !leaves_unchecked);
    send_seed_ = connection_seed(peer_number, number);
    receive_seed_ = connection_seed(number, peer_number);
    channel_ = std::move(channel);
    seal_bytes_ = channel_ == nullptr ? 0 : tag_bytes;
    leaves_unchecked_ = leaves_unchecked;
  }
  void close() noexcept { channel_.reset(); }

  // Behind each frame.
  [[nodiscard]] uint32_t seal_bytes() const noexcept { return seal_bytes_; }
  [[nodiscard]] bool encrypts() const noexcept {
    return channel_ != nullptr && channel_->send.encrypts();
  }
  // Frames with payloads in place carry frame_unchecked.
  [[nodiscard]] bool leaves_unchecked() const noexcept { return leaves_unchecked_; }
  // No frame can be sealed any more.
  [[nodiscard]] bool is_broken() const noexcept {
    return channel_ != nullptr && channel_->send.is_broken();
  }
  // For an accept that is repeated; null: frames are not sealed.
  [[nodiscard]] const SecureChannel* channel() const noexcept { return channel_.get(); }

  // A frame that is to be queued. False: its payload is not readable memory.
  [[nodiscard]] bool prepare(FrameBuffer& frame) const noexcept {
    return channel_ == nullptr ? frame.compute_body_check(send_seed_)
                               : frame.has_readable_payload();
  }
  // The last `bytes` bytes that such a frame holds are new.
  void note_growth(FrameBuffer& frame, uint32_t bytes) const noexcept {
    LINTEL_ASSERT(frame.payload == nullptr && !frame.encrypted && bytes <= frame.length);
    if (channel_ == nullptr)
      frame.body_check = body_check(frame.body_check, frame.data() + frame.length - bytes, bytes);
  }

  // Makes a frame ready for the link. Returns the number of its pieces; 0: it could not be sealed,
  // and must not be sent. `oldest`: of the frames that may be sent again, linked by `next`.
  [[nodiscard, gnu::always_inline]] inline unsigned finish(FrameBuffer& frame, FrameHeader& header,
                                                           Piece (&pieces)[most_pieces],
                                                           FrameBuffer* oldest) noexcept {
    if (channel_ != nullptr) [[unlikely]]
      return finish_sealed(frame, header, pieces, oldest);
    if (frame.payload != nullptr && frame.transmission != 0) check_again(frame);
    header.check = finish_check(frame.body_check, header);
    std::memcpy(frame.data(), &header, sizeof header);
    pieces[0] = {frame.data(), frame.held_bytes};
    if (frame.payload == nullptr) return 1;
    pieces[1] = {const_cast<std::byte*>(frame.payload), frame.length - frame.held_bytes};
    return 2;
  }
  // Completes a frame of `bytes` bytes that is sent once. The header is written in front of its
  // body; there is room for a tag behind it. Returns the bytes to send, or 0.
  [[nodiscard]] uint32_t finish(std::byte* frame, uint32_t bytes, FrameHeader header,
                                FrameBuffer* oldest) noexcept;
  // The link did not take these. They are sent as they are, with their counters: while a link is
  // full for seconds, new ones would run through an epoch of which the peer sees no frame, and so
  // misses the next key.
  void keep_seals(FrameBuffer* const* frames, unsigned count) const noexcept {
    if (channel_ == nullptr) return;
    for (unsigned i = 0; i < count; ++i) frames[i]->sealed = true;
  }
  // Decrypts what a frame holds.
  void make_plain(FrameBuffer& frame) noexcept {
    if (frame.encrypted) channel_->send.undo(frame.body_check, frame.data(), frame.held_bytes);
    frame.encrypted = frame.sealed = false;
  }

  enum class Opened : uint8_t { good, damaged, replayed, malformed };
  // A frame that arrived. Decrypts it and takes off the tag.
  [[nodiscard, gnu::always_inline]] inline Opened open_frame(InboundFrame& frame,
                                                             const FrameHeader& header) noexcept {
    if (channel_ != nullptr) [[unlikely]]
      return open_sealed(frame, header);
    uint32_t checked_bytes = frame.length;
    bool permitted = true;
    if ((header.flags & frame_unchecked) != 0) {
      permitted = leaves_unchecked_ && header.type == FrameType::data;
      checked_bytes = std::min(checked_bytes, bytes_before_payload(header.flags));
    }
    return permitted && check_frame(receive_seed_, frame.data, checked_bytes) ? Opened::good
                                                                              : Opened::damaged;
  }

 private:
  void check_again(FrameBuffer& frame) const noexcept;
  unsigned finish_sealed(FrameBuffer& frame, const FrameHeader& header,
                         Piece (&pieces)[most_pieces], FrameBuffer* oldest) noexcept;
  bool seal(FrameBuffer& frame, const FrameHeader& header, FrameBuffer* oldest) noexcept;
  uint64_t seal(const FrameHeader& header, const UnsealedFrame& frame,
                FrameBuffer* oldest) noexcept;
  Opened open_sealed(InboundFrame& frame, const FrameHeader& header) noexcept;

  std::unique_ptr<SecureChannel> channel_;  // released when the connection has failed
  uint32_t send_seed_ = 0;                  // of checks
  uint32_t receive_seed_ = 0;
  uint16_t seal_bytes_ = 0;
  bool leaves_unchecked_ = false;
};

}  // namespace lintel

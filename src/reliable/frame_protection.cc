// Checks and seals of frames. Message path.
#include "reliable/frame_protection.h"

namespace lintel {

namespace {
// Takes the place of a payload whose memory is gone.
const std::byte zeros[PacketLink::largest_mtu]{};
}  // namespace

// A payload in the application's memory may have changed since the frame was first sent, though it
// should not. The check is computed again: a frame whose check is wrong would be repeated for ever.
// If the memory is gone, no operation waits for the payload, but the frames behind it do.
void FrameProtection::check_again(FrameBuffer& frame) const noexcept {
  if (frame.compute_body_check(send_seed_)) return;
  frame.payload = zeros;
  static_cast<void>(frame.compute_body_check(send_seed_));
}

uint32_t FrameProtection::finish(std::byte* frame, uint32_t bytes, FrameHeader header,
                                 FrameBuffer* oldest) noexcept {
  LINTEL_ASSERT(bytes >= sizeof header);
  if (channel_ != nullptr) return seal(header, {frame, bytes}, oldest) == 0 ? 0 : bytes + tag_bytes;
  header.check =
      finish_check(body_check(send_seed_, frame + sizeof header, bytes - sizeof header), header);
  std::memcpy(frame, &header, sizeof header);
  return bytes;
}

unsigned FrameProtection::finish_sealed(FrameBuffer& frame, const FrameHeader& header,
                                        Piece (&pieces)[most_pieces],
                                        FrameBuffer* oldest) noexcept {
  if (!frame.sealed && !seal(frame, header, oldest)) return 0;
  frame.sealed = false;
  if (frame.payload == nullptr || encrypts()) {
    pieces[0] = {frame.data(), frame.length + tag_bytes};
    return 1;
  }
  pieces[0] = {frame.data(), frame.held_bytes};
  pieces[1] = {const_cast<std::byte*>(frame.payload), frame.length - frame.held_bytes};
  pieces[2] = {frame.data() + frame.held_bytes, tag_bytes};
  return 3;
}

// Each transmission has its own counter. The tag lies behind what the frame holds. False: the
// sealer is broken.
bool FrameProtection::seal(FrameBuffer& frame, const FrameHeader& header,
                           FrameBuffer* oldest) noexcept {
  UnsealedFrame unsealed{frame.data(), frame.held_bytes, frame.payload,
                         frame.length - frame.held_bytes};
  make_plain(frame);
  uint64_t counter = seal(header, unsealed, oldest);
  if (counter == 0 && !is_broken()) {
    // As in check_again(): the frames behind it wait for this one.
    unsealed.payload = frame.payload = zeros;
    counter = seal(header, unsealed, oldest);
  }
  LINTEL_ASSERT((counter == 0) == is_broken());
  if (counter == 0) return false;
  frame.encrypted = encrypts();
  frame.body_check = static_cast<uint32_t>(counter);
  return true;
}

// Frames that may be sent again become plain before the key that encrypted them is forgotten.
uint64_t FrameProtection::seal(const FrameHeader& header, const UnsealedFrame& frame,
                               FrameBuffer* oldest) noexcept {
  FrameSealer& sealer = channel_->send;
  if (sealer.forgets_key_next()) [[unlikely]]
    for (; oldest != nullptr; oldest = oldest->next)
      if ((oldest->encrypted || oldest->sealed) && sealer.has_oldest_key(oldest->body_check))
        make_plain(*oldest);
  return sealer.seal(header, frame);
}

FrameProtection::Opened FrameProtection::open_sealed(InboundFrame& frame,
                                                     const FrameHeader& header) noexcept {
  if (frame.length < sizeof header + tag_bytes) return Opened::malformed;
  const FrameOpener::Result result = channel_->receive.open_frame(header, frame.data, frame.length);
  frame.length -= tag_bytes;
  if (result == FrameOpener::Result::replayed) return Opened::replayed;
  return result == FrameOpener::Result::good ? Opened::good : Opened::damaged;
}

}  // namespace lintel

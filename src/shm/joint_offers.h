// Long copies that this process must make and offers to share with the peer (joint_copy.h). A peer
// that computes or sleeps takes no part, and nothing waits for it. A chunk that it has taken is its
// own until it is copied or the peer ended; a copy with such a chunk ends later. Message path of
// large payloads.
#pragma once

#include <cstdint>

#include "shm/joint_copy.h"
#include "shm/segment_layout.h"
#include "shm/shm_link.h"
#include "transport/transport.h"

namespace lintel {

class JointOffers {
 public:
  explicit JointOffers(SegmentHeader& own) noexcept : offer_(own.joint_copy) {}

  // Copies, alone if it is not worth sharing. `started`: the peer still has a chunk, see settle().
  [[nodiscard]] RemoteResult copy(ShmLink& link, CopyDirection direction, const Piece* local,
                                  unsigned local_count, const RemoteMemory* remote,
                                  unsigned remote_count, uint32_t token) noexcept
      LINTEL_REQUIRES(polling);

  // The link of a copy that was started and has not ended; or nullptr.
  [[nodiscard]] const ShmLink* pending() const noexcept { return pending_; }
  // The peer has copied its chunks and rung the doorbell: settle() ends the copy.
  [[nodiscard]] bool may_settle() const noexcept { return pending_ != nullptr && helper_done(); }
  // Ends the pending copy through on_remote_done().
  void settle(MessageSink& sink) noexcept LINTEL_REQUIRES(polling);
  // The peer of the pending copy has ended, or sent a malformed message.
  void give_up(MessageSink& sink) noexcept LINTEL_REQUIRES(polling);

  [[nodiscard]] uint64_t helped_chunks() const noexcept { return helped_chunks_; }

 private:
  [[nodiscard]] bool plan(const Piece& local, const RemoteMemory& remote) noexcept;
  void publish(ShmLink& link) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] bool copy_chunk(ShmLink& link, unsigned index) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] bool helper_done() const noexcept {
    return offer_.helper_finished.load(std::memory_order_acquire) >= helped_;
  }
  [[nodiscard]] bool await_helper() const noexcept;
  [[nodiscard]] RemoteResult finish(ShmLink& link) noexcept LINTEL_REQUIRES(polling);

  JointCopy& offer_;
  uint32_t offers_ = 0;
  // The last offer, in private memory: what peers write into the segment can spoil no more than it.
  CopyDirection direction_ = CopyDirection::to_here;
  unsigned chunks_ = 0;
  Piece local_[joint_copy_max_chunks];
  RemoteMemory remote_[joint_copy_max_chunks];
  unsigned own_ = 0;     // chunks that this process copied
  unsigned helped_ = 0;  // chunks that the peer took
  RemoteResult result_{};
  ShmLink* pending_ = nullptr;
  uint32_t token_ = 0;
  uint64_t helped_chunks_ = 0;
};

}  // namespace lintel

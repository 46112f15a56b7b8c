// Buffers for frames that are kept: sent and not yet acknowledged, or arrived ahead of others.
// Message path: acquire() and release() take a spin lock and never call the system. Memory is
// reserved at creation and touched when a buffer is used for the first time; all connections of a
// transport share it, so that an idle connection holds none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/packet_link.h"
#include "util/spin_lock.h"

namespace lintel {

struct alignas(16) FrameBuffer {
  FrameBuffer* next = nullptr;
  uint64_t sent_ns = 0;       // last transmission
  uint64_t transmission = 0;  // number of the last transmission by its path; 0: not sent yet
  uint32_t sequence = 0;
  uint32_t length = 0;                 // length of the frame, with its header
  uint32_t held_bytes = 0;             // bytes of it in data(); the others lie at `payload`
  const std::byte* payload = nullptr;  // memory of the application
  uint32_t body_check = 0;  // see frame.h; of a sealed frame: the low half of its counter
  uint8_t flags = 0;        // FrameHeader::flags
  uint8_t size_class = 0;
  uint8_t path = 0;           // index of the path of the last transmission
  uint8_t messages = 0;       // whole ones in the frame; 0: a fragment
  bool acknowledged = false;  // selectively
  bool lost = false;          // to be sent again
  bool repeated = false;      // sent more than once: no measure of round trips
  bool handed_up = false;     // out of order: what it carried went up, this says that it came
  bool encrypted = false;     // the body, see frame_seal.h
  bool sealed = false;        // and not sent so: the link was full
  alignas(16) std::byte link_header[PacketLink::headroom];  // the link's own, in front of the frame

  [[nodiscard]] std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  // Computes the check of all bytes behind the FrameHeader, up to the payload if frame_unchecked is
  // set. False: the payload is not readable memory.
  [[nodiscard]] bool compute_body_check(uint32_t seed) noexcept;
  [[nodiscard]] bool has_readable_payload() const noexcept;
};
static_assert(offsetof(FrameBuffer, link_header) + PacketLink::headroom == sizeof(FrameBuffer));

class FramePool {
 public:
  static constexpr unsigned size_classes = 3;

  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;
  ~FramePool();

  // Set-up path. Reserves `memory_bytes` for frames of up to `largest_frame` bytes. Each size class
  // has its own part, so that others cannot use it up. False: the system refuses the address space.
  [[nodiscard]] bool open(uint32_t largest_frame, uint64_t memory_bytes) noexcept;

  // Bytes that fit behind data().
  [[nodiscard]] uint32_t capacity_of(const FrameBuffer& buffer) const noexcept {
    return capacity_[buffer.size_class];
  }
  // A buffer for a frame of `length` bytes, or nullptr when the memory is used up.
  [[nodiscard]] FrameBuffer* acquire(uint32_t length) noexcept;
  void release(FrameBuffer* buffer) noexcept;
  // Releases a chain through `next`.
  void release_chain(FrameBuffer* first) noexcept;

  [[nodiscard]] std::byte* memory() const noexcept { return memory_; }
  [[nodiscard]] uint64_t memory_bytes() const noexcept { return memory_bytes_; }
  [[nodiscard]] uint64_t used_bytes() const noexcept { return used_bytes_; }  // reads without lock
  // Returns how much is left at least for frames of any length. Half of the memory is for the
  // longest.
  [[nodiscard]] uint64_t free_bytes() noexcept;

 private:
  [[nodiscard]] unsigned class_of(uint32_t length) const noexcept {
    return length <= capacity_[0] ? 0 : length <= capacity_[1] ? 1 : 2;
  }
  void release_locked(FrameBuffer* buffer) noexcept LINTEL_REQUIRES(lock_);
  [[nodiscard]] FrameBuffer* take(unsigned size_class) noexcept LINTEL_REQUIRES(lock_);

  SpinLock lock_;
  std::byte* memory_ = nullptr;
  uint64_t memory_bytes_ = 0;
  uint64_t used_bytes_ = 0;
  uint32_t capacity_[size_classes] = {};
  std::byte* fresh_[size_classes] LINTEL_GUARDED_BY(lock_) = {};  // begin of never used memory
  std::byte* end_[size_classes] = {};
  FrameBuffer* free_[size_classes] LINTEL_GUARDED_BY(lock_) = {};
};

}  // namespace lintel

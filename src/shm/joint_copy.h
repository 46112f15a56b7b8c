// A long copy in which both processes take part, as it lies in the segment of the one that must
// copy, the owner of the offer. The owner copies chunks from the front (joint_offers.h). The peer,
// whose memory the other end is, copies chunks from the back if it is polling (joint_help.h).
// Message path.
#pragma once

#include <atomic>
#include <cstdint>

namespace lintel {

inline constexpr unsigned joint_copy_max_chunks = 8;

// A helper must not be away for long.
inline constexpr uint64_t joint_chunk_max_bytes = uint64_t{1} << 26;

// A helper that reads this may be late: every field is atomic, and is valid only while a chunk of
// its offer is claimed.
struct JointChunk {
  std::atomic<uint64_t> owner_address;
  std::atomic<uint64_t> helper_address;
  std::atomic<uint64_t> bytes;
  std::atomic<uint64_t> key;  // RemoteMemory::key of the helper's memory
};
static_assert(sizeof(JointChunk) == 32);

// The chunks that are taken, in one word: number of the offer, number of chunks, chunks taken from
// the front, chunks taken from the back.
struct JointClaims {
  uint32_t offer = 0;
  uint8_t chunks = 0;
  uint8_t front = 0;
  uint8_t back = 0;

  [[nodiscard]] static JointClaims unpack(uint64_t word) noexcept {
    return {static_cast<uint32_t>(word >> 32), static_cast<uint8_t>(word >> 16),
            static_cast<uint8_t>(word >> 8), static_cast<uint8_t>(word)};
  }
  [[nodiscard]] uint64_t pack() const noexcept {
    return uint64_t{offer} << 32 | uint64_t{chunks} << 16 | uint64_t{front} << 8 | back;
  }
  [[nodiscard]] bool any_left() const noexcept { return front + back < chunks; }
};

struct JointCopy {
  alignas(64) std::atomic<uint64_t> claims;
  std::atomic<uint64_t> helper_nonce;     // nonce of the process that may help
  std::atomic<uint32_t> helper_finished;  // chunks copied or given up by the helper
  std::atomic<uint32_t> helper_failed;    // not 0: the helper gave a chunk up
  std::atomic<uint32_t> to_owner;         // not 0: the data flow to the owner of the offer
  alignas(64) JointChunk chunk[joint_copy_max_chunks];

  // Owner: takes the next chunk from the front; false if none is left.
  bool claim_front() noexcept {
    uint64_t word = claims.load(std::memory_order_relaxed);
    for (;;) {
      JointClaims now = JointClaims::unpack(word);
      if (!now.any_left()) return false;
      ++now.front;
      if (claims.compare_exchange_weak(word, now.pack(), std::memory_order_relaxed)) return true;
    }
  }
  // Helper: the same from the back, of that offer only. Who got its number from `help_wanted` sees
  // its chunks.
  bool claim_back(uint32_t offer, unsigned& index) noexcept {
    uint64_t word = claims.load(std::memory_order_relaxed);
    for (;;) {
      JointClaims now = JointClaims::unpack(word);
      if (now.offer != offer || now.chunks > joint_copy_max_chunks || !now.any_left()) return false;
      index = now.chunks - 1u - now.back++;
      if (claims.compare_exchange_weak(word, now.pack(), std::memory_order_relaxed)) return true;
    }
  }
  // Owner: nothing can be taken any more; returns how many chunks the helper took.
  unsigned close() noexcept {
    uint64_t word = claims.load(std::memory_order_relaxed);
    for (;;) {
      JointClaims now = JointClaims::unpack(word);
      now.front = static_cast<uint8_t>(now.chunks - now.back);
      if (claims.compare_exchange_weak(word, now.pack(), std::memory_order_relaxed))
        return now.back;
    }
  }
};
static_assert(sizeof(JointCopy) == 64 + joint_copy_max_chunks * sizeof(JointChunk));
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace lintel

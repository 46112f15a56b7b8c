/* near_ring.h: small messages between neighbours through memory that they share. Message path.
 *
 * Each process has a ring for requests and one for replies. Any thread of any neighbour writes into
 * them; any thread of the process handles the messages. If no slot is free, the message is sent
 * through Portals. So neither side ever waits for a slot.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_AM_NEAR_RING_H
#define LINTEL_GASNET_AM_NEAR_RING_H

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "am/header.h"
#include "job/thread.h"

namespace lintel::gasnet {

/** Two cache lines. In shared memory that is initially zero. */
struct alignas(64) NearSlot {
  /* State in lap n (from 0): 2n if the slot is free, 2n + 1 if it has a message. */
  std::atomic<uint64_t> turn;
  PutFields fields;
  gex_Rank_t source;
  alignas(kAlignment) char payload[80];
};
static_assert(sizeof(NearSlot) == 128 && std::is_standard_layout_v<NearSlot>);

template <uint64_t kSlots>
class NearRing {
 public:
  /** @param write  called with a slot. When it returns, the message becomes visible.
   * @return false if no slot is free. */
  template <typename Write>
  bool push(Write&& write) {
    uint64_t place = next_written_.load(std::memory_order_relaxed);
    for (;;) {
      NearSlot& slot = slots_[place % kSlots];
      const uint64_t free_turn = place / kSlots * 2;
      const uint64_t turn = slot.turn.load(std::memory_order_acquire);
      if (turn == free_turn) {
        if (!next_written_.compare_exchange_weak(place, place + 1, std::memory_order_relaxed))
          continue;
        write(slot);
        gasneti_assert(slot.turn.load(std::memory_order_relaxed) == free_turn);
        slot.turn.store(free_turn + 1, std::memory_order_release);
        // The next slot is in the cache of the reader, which has freed it. The next push needs it.
        __builtin_prefetch(&slots_[(place + 1) % kSlots]);
        return true;
      }
      if (turn < free_turn) return false;
      place = next_written_.load(std::memory_order_relaxed);
    }
  }

  /** @param read  called with the slot of the oldest message. When it returns, the slot is free.
   * @return false if there is none. */
  template <typename Read>
  bool pop(Read&& read) {
    uint64_t place = next_read_.load(std::memory_order_relaxed);
    for (;;) {
      NearSlot& slot = slots_[place % kSlots];
      const uint64_t full_turn = place / kSlots * 2 + 1;
      const uint64_t turn = slot.turn.load(std::memory_order_acquire);
      if (turn < full_turn) return false;
      if (turn == full_turn) {
        if constexpr (!kCallsAreConcurrent)
          next_read_.store(place + 1, std::memory_order_relaxed);
        else if (!next_read_.compare_exchange_weak(place, place + 1, std::memory_order_relaxed))
          continue;
        read(slot);
        gasneti_assert(slot.turn.load(std::memory_order_relaxed) == full_turn);
        slot.turn.store(full_turn + 1, std::memory_order_release);
        return true;
      }
      place = next_read_.load(std::memory_order_relaxed);
    }
  }

  bool is_empty() const {
    const uint64_t place = next_read_.load(std::memory_order_relaxed);
    return slots_[place % kSlots].turn.load(std::memory_order_relaxed) < place / kSlots * 2 + 1;
  }

 private:
  alignas(64) std::atomic<uint64_t> next_written_;
  alignas(64) std::atomic<uint64_t> next_read_;
  NearSlot slots_[kSlots];
};

struct NearRings {
  NearRing<512> requests;
  NearRing<256> replies;
};

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_AM_NEAR_RING_H

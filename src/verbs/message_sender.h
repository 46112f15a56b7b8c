// Messages over a queue pair: sent from slots, which keep them until the peer has them. Those that
// a queue pair did not deliver are sent again as datagrams. Message path: no system call of ours (a
// driver may make its own), no allocation. The lock of the link is held, except as said.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <infiniband/verbs.h>

#include "util/arena.h"
#include "util/counter.h"
#include "verbs/channel.h"
#include "verbs/device_memory.h"

namespace lintel {

// Memory in which messages wait until the device has sent them and the peer has them: when a queue
// pair fails, they are sent again from there. Slots have one of two sizes. Message path; set-up
// path for open().
class SendSlots {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  // Registers both pools with `pd`. False: `reason` says why not.
  [[nodiscard]] bool open(ibv_pd* pd, uint32_t small_bytes, uint32_t large_bytes,
                          std::string& reason);

  // Length of small slots, rounded up to cache lines.
  [[nodiscard]] uint32_t small_bytes() const noexcept { return small_.slot_bytes; }
  [[nodiscard]] static bool is_large(uint32_t slot) noexcept { return (slot & large_bit) != 0; }
  // Any thread. Returns `none` if all are in use, or none is so large.
  [[nodiscard]] uint32_t acquire(uint64_t bytes) noexcept;
  void release(uint32_t slot) noexcept { pool(slot).states.release(slot & ~large_bit); }

  // Memory of a slot. Called by the thread that holds the slot.
  [[nodiscard]] std::byte* data(uint32_t slot) const noexcept {
    return pool(slot).memory.data() + size_t{slot & ~large_bit} * pool(slot).slot_bytes;
  }
  [[nodiscard]] uint32_t lkey(uint32_t slot) const noexcept {
    return pool(slot).memory.local_key();
  }
  [[nodiscard]] uint32_t& length(uint32_t slot) noexcept { return state(slot).length; }
  // The next slot of a list.
  [[nodiscard]] uint32_t& next(uint32_t slot) noexcept { return state(slot).next; }

 private:
  static constexpr uint32_t large_bit = 1u << 31;  // marks the number of a large slot

  struct State {
    std::atomic<uint32_t> next_free{0};
    uint32_t length = 0;
    uint32_t next = none;
  };
  struct Pool {
    Arena<State> states;
    RegisteredBuffer memory;
    uint32_t slot_bytes = 0;

    bool open(ibv_pd* pd, uint32_t count, uint32_t bytes, std::string& reason);
  };
  [[nodiscard]] Pool& pool(uint32_t slot) noexcept { return is_large(slot) ? large_ : small_; }
  [[nodiscard]] const Pool& pool(uint32_t slot) const noexcept {
    return is_large(slot) ? large_ : small_;
  }
  [[nodiscard]] State& state(uint32_t slot) noexcept {
    return pool(slot).states.at(slot & ~large_bit);
  }

  Pool small_;
  Pool large_;
};

class MessageSender {
 public:
  // Set-up path: for messages of small_bytes and large_bytes, headers included. False: `reason`
  // says why not.
  [[nodiscard]] bool open(ibv_pd* pd, uint32_t small_bytes, uint32_t large_bytes,
                          std::string& reason) {
    return slots_.open(pd, small_bytes, large_bytes, reason);
  }

  [[nodiscard]] SendStatus send(VerbsLink& link, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept LINTEL_REQUIRES(link.lock);
  // Implements Transport::end_access() where the peer exposes memory through windows.
  void invalidate_windows(VerbsLink& link, const RemoteMemory* remote, unsigned count) noexcept
      LINTEL_REQUIRES(link.lock);
  // Sends one more message, with a completion, because the last messages have none. Its completion
  // covers all of them.
  void request_completion(VerbsLink& link) noexcept LINTEL_REQUIRES(link.lock);

  // A message has ended; without success it may have arrived or not, and is kept to be sent again.
  void retire(VerbsLink& link, uint32_t slot, bool success) noexcept LINTEL_REQUIRES(link.lock);
  // The queue pair is gone.
  void release_spares(Channel& channel) noexcept;
  // Sends the messages again that the peer has not received. Called without the lock. False: not
  // all are sent yet.
  [[nodiscard]] bool send_again(VerbsLink& link, Transport& datagrams) noexcept;
  // Drops the messages of a peer that is gone. Called without the lock.
  void discard_unsent(VerbsLink& link) noexcept;

  // Messages that have reached the other end over queue pairs, and as datagrams instead.
  [[nodiscard]] uint64_t sent() const noexcept { return sent_.get(); }
  [[nodiscard]] uint64_t sent_again() const noexcept { return sent_again_.get(); }

 private:
  uint32_t acquire_slot(Channel& channel, uint64_t bytes) noexcept;
  void release_slot(Channel& channel, uint32_t slot) noexcept;
  uint32_t take_unsent(VerbsLink& link) noexcept LINTEL_REQUIRES(link.lock);

  SendSlots slots_;
  Counter sent_;  // the poller
  SharedCounter sent_again_;
};

}  // namespace lintel

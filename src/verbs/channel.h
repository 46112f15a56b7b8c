// State that this process keeps about the queue pair to one peer.
//
// Messages travel as datagrams (through the reliability layer) or over a queue pair; both ends
// agree on each change from one to the other with messages of kind connection:
//   offer      address of the sender's queue pair; the answer is an offer or decline
//   change     the last datagram of the sender: its next messages come over the queue pair
//   resume     the sender's queue pair has stopped; contains the number of messages that came over
//              it: the others are sent again as datagrams
// The sender of change does not wait for an answer, since a process that makes no calls
// (PTL_PROGRESS=caller) would not send one. The receiver keeps messages that overtake the last
// datagram.
#pragma once

#include <cstdint>
#include <memory>

#include "util/assert.h"
#include "util/lock.h"
#include "verbs/queue_pair.h"
#include "verbs/send_queue.h"
#include "verbs/verbs_link.h"

namespace lintel {

// Keys of exposed memory as peers get them: the key of the window or registration, the
// exposure that it is part of, and the queue pair through which it can be used.
inline constexpr unsigned exposure_index_bits = 20;
// Bit of the index in keys of registrations, which no message invalidates.
inline constexpr uint32_t registration_bit = 1u << (exposure_index_bits - 1);

[[nodiscard]] inline uint64_t exposure_key(uint32_t index, uint32_t channel_number,
                                           uint32_t window_key) noexcept {
  return (uint64_t{channel_number} << exposure_index_bits | index) << 32 | window_key;
}
[[nodiscard]] inline uint32_t exposure_of_key(uint64_t key) noexcept {
  return static_cast<uint32_t>(key >> 32) & ((1u << exposure_index_bits) - 1);
}
[[nodiscard]] inline bool is_key_of_window(uint64_t key) noexcept {
  return (exposure_of_key(key) & registration_bit) == 0;
}
[[nodiscard]] inline bool is_key_of_channel(uint64_t key, uint32_t channel_number) noexcept {
  return key >> (32 + exposure_index_bits) == (channel_number & 0xfff);
}

struct RemoteAccess;
struct ExposedMemory;

// Treatment of messages that arrive over a queue pair.
enum class Receiving : uint8_t {
  keeps,     // messages wait for the last datagram, which has not come yet
  hands_up,  // messages are delivered
  drops,     // messages are dropped: they come again as datagrams
};

// Messages that came over the queue pair.
struct ReceivedMessages {
  static constexpr uint32_t none_kept = UINT32_MAX;

  Receiving treatment = Receiving::keeps;
  uint64_t count = 0;               // kept ones included
  uint32_t kept_first = none_kept;  // receive buffers, in order
  uint32_t kept_last = none_kept;
};

// How far the end of the queue pair is.
struct ChannelStop {
  bool begun = false;
  bool resume_sent = false;
  bool peer_resumes = false;
  uint64_t peer_received = 0;  // count in the peer's resume message
  const char* reason = "";
  uint64_t since_ns = 0;
};

// State at the last look at whether the queue pair is used.
struct LastUse {
  uint64_t messages = 0;
  uint64_t idle_since_ns = 0;
};

// Small slots that were released, for the next messages: taken without a locked instruction.
class SpareSlots {
 public:
  static constexpr uint32_t capacity = 2 * SendQueue::signal_interval;

  [[nodiscard]] bool is_empty() const noexcept { return count_ == 0; }
  [[nodiscard]] bool is_full() const noexcept { return count_ == capacity; }
  void push(uint32_t slot) noexcept {
    LINTEL_ASSERT(!is_full());
    slots_[count_++] = slot;
  }
  [[nodiscard]] uint32_t pop() noexcept {
    LINTEL_ASSERT(!is_empty());
    return slots_[--count_];
  }

 private:
  uint32_t count_ = 0;
  uint32_t slots_[capacity];
};

// Messages that this end sends over the queue pair.
struct SentMessages {
  uint64_t posted = 0;
  uint64_t retired = 0;
  // Key of a window of the peer that the next message invalidates; 0: none.
  uint64_t key_to_invalidate = 0;
  SpareSlots spares;
};

// Accesses to the peer's memory.
struct ChannelAccesses {
  RemoteAccess* waiting = nullptr;  // those with parts left to post
  RemoteAccess** waiting_tail = &waiting;
  uint32_t posted = 0;  // work requests
};

struct Channel {
  uint32_t index = 0;   // index in the table of channels: the other end sends it with each message
  uint32_t number = 0;  // QPN, also when the queue pair is gone
  std::unique_ptr<QueuePair> queue_pair;

  // --- the poller
  ReceivedMessages received;  // Arrivals
  ChannelStop stop;           // Channels, ChannelChange
  LastUse last_use;           // IdleChannels
  bool connected = false;     // the other end's address is known

  // --- under the lock of the link
  QueuePairAddress peer;
  uint32_t peer_index = 0;
  uint32_t exposures_to_withdraw = 0;  // Exposures
  SendQueue queue;
  SentMessages sent;                   // MessageSender
  ChannelAccesses accesses;            // RemoteAccesses
  ExposedMemory* exposures = nullptr;  // Exposures

  // Whether accesses to memory are under way, by either end: these may take longer than the idle
  // time after which a queue pair is stopped.
  [[nodiscard]] bool has_memory_in_use() const noexcept {
    return accesses.posted != 0 || accesses.waiting != nullptr || exposures != nullptr;
  }
  // Messages of both directions.
  [[nodiscard]] uint64_t message_count() const noexcept { return sent.posted + received.count; }
};

// Messages to the peer may wait until uncork(), and are then posted together.
inline void cork(VerbsLink& link) noexcept {
  const LockGuard guard(link.lock);
  ++link.corks;
}
inline void uncork(VerbsLink& link) noexcept {
  const LockGuard guard(link.lock);
  if (--link.corks == 0 && link.channel != nullptr) link.channel->queue.flush();
}

}  // namespace lintel

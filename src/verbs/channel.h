// What this process keeps about the queue pair to one peer.
//
// Messages travel as datagrams (through the reliability layer) or over a queue pair; both ends
// agree on each change from one to the other with messages of kind connection:
//   offer      here is a queue pair            -> offer of the other end, or decline
//   change     my last datagram was the one before this: I go on over the queue pair
//   resume     my queue pair has stopped; so many messages came over it: the others come as
//              datagrams
// No answer to change is waited for, since a process that makes no calls (PTL_PROGRESS=caller)
// would not send it: the receiver keeps what overtakes the last datagram.
#pragma once

#include <cstdint>
#include <memory>

#include "util/lock.h"
#include "verbs/queue_pair.h"
#include "verbs/send_queue.h"
#include "verbs/verbs_link.h"

namespace lintel {

// Keys of exposed memory as peers get them: the key of the window or registration, the
// exposure that it is part of, and the queue pair through which it can be used.
inline constexpr unsigned exposure_index_bits = 20;

[[nodiscard]] inline uint64_t exposure_key(uint32_t index, uint32_t channel_number,
                                           uint32_t window_key) noexcept {
  return (uint64_t{channel_number} << exposure_index_bits | index) << 32 | window_key;
}
[[nodiscard]] inline uint32_t exposure_of_key(uint64_t key) noexcept {
  return static_cast<uint32_t>(key >> 32) & ((1u << exposure_index_bits) - 1);
}
[[nodiscard]] inline bool is_key_of_channel(uint64_t key, uint32_t channel_number) noexcept {
  return key >> (32 + exposure_index_bits) == (channel_number & 0xfff);
}

struct RemoteAccess;
struct ExposedMemory;

// What is done with messages that arrive over a queue pair.
enum class Receiving : uint8_t {
  keeps,  // they wait for the last datagram, which has yet to come
  hands_up,
  drops,  // they come again as datagrams
};

struct Channel {
  static constexpr uint32_t spare_slots_kept = 2 * SendQueue::signal_interval;
  static constexpr uint32_t none_kept = UINT32_MAX;

  uint32_t index = 0;   // in the table of channels: the other end sends it with each message
  uint32_t number = 0;  // QPN, also when the queue pair is gone
  std::unique_ptr<QueuePair> queue_pair;

  // --- the poller
  bool connected = false;  // the other end's address is known
  Receiving receiving = Receiving::keeps;
  uint32_t kept_first = none_kept;  // receive buffers, in order
  uint32_t kept_last = none_kept;
  bool stopping = false;
  bool resume_sent = false;
  bool peer_resumes = false;
  const char* why_stopped = "";
  uint64_t stopped_at_ns = 0;
  uint64_t messages_received = 0;  // those that are kept included
  uint64_t peer_received = 0;      // as it said when it resumed
  uint64_t messages_at_last_look = 0;
  uint64_t idle_since_ns = 0;

  // --- under the lock of the link
  QueuePairAddress peer;
  uint32_t peer_index = 0;
  SendQueue queue;
  // Of MessageSender.
  uint64_t messages_posted = 0;
  uint64_t messages_retired = 0;
  // Key of a window of the peer that the next message invalidates; 0: none.
  uint64_t key_to_invalidate = 0;
  uint32_t spare_count = 0;
  uint32_t spare_slots[spare_slots_kept];  // released small slots, for the next messages
  // Of RemoteAccesses.
  RemoteAccess* waiting = nullptr;  // with something left to post
  RemoteAccess** waiting_tail = &waiting;
  uint32_t accesses_posted = 0;  // work requests
  // Of Exposures.
  ExposedMemory* exposures = nullptr;
  uint32_t exposures_to_withdraw = 0;

  // Accesses to memory are under way, by either end: they may take longer than anything may be
  // idle.
  [[nodiscard]] bool has_memory_in_use() const noexcept {
    return accesses_posted != 0 || waiting != nullptr || exposures != nullptr;
  }
};

// Messages to the peer may wait until let_go(), and are then posted together.
inline void hold(VerbsLink& link) noexcept {
  const LockGuard guard(link.lock);
  ++link.holds;
}
inline void let_go(VerbsLink& link) noexcept {
  const LockGuard guard(link.lock);
  if (--link.holds == 0 && link.channel != nullptr) link.channel->queue.flush();
}

}  // namespace lintel

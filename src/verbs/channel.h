// What this process keeps about the queue pair to one peer, and about that peer.
//
// Messages travel as datagrams (through the reliability layer) or over a queue pair; both ends agree on
// each change from one to the other with messages of kind connection, see channel_agreement.cc:
//   offer      here is a queue pair            -> offer of the other end, or decline
//   change     my last datagram was the one before this: I go on over the queue pair
//   resume     my queue pair has stopped; so many messages came over it: the others come as datagrams
// Nobody waits for an answer to change, since a process that makes no calls (PTL_PROGRESS=caller) would leave
// its messages lying: what overtakes the last datagram is kept by the receiver.
// Path classes as the functions that use it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "registration/registration.h"
#include "transport/transport.h"
#include "util/spin_lock.h"
#include "verbs/queue_pair.h"

namespace lintel {

struct VerbsLink;

// What goes on in the send queue, in the order of posting.
enum class RequestKind : uint8_t {
  message,
  remote_access,
  bind,     // of a memory window
  conceal,  // a memory window is invalidated by its owner
};

struct PostedRequest {
  RequestKind kind;
  uint32_t index;  // of the slot, the remote access, or the exposure
};

// Work requests that are to be posted together with the next one.
struct HeldRequests {
  static constexpr unsigned most = 12;
  unsigned count = 0;
  ibv_send_wr requests[most];
  ibv_sge pieces[most];
};

// A remote read or write of any length, cut into work requests.
struct RemoteAccess {
  static constexpr unsigned most_pieces = 32;
  std::atomic<uint32_t> next_free{0};
  RemoteAccess* next =
      nullptr;  // of the channel's list: not everything is posted; or of those that ended
  VerbsLink* link = nullptr;
  uint32_t token = 0;
  bool writes = false;
  RemoteStatus outcome = RemoteStatus::done;
  unsigned local_count = 0;
  unsigned remote_count = 0;
  unsigned next_local = 0;
  unsigned next_remote = 0;
  uint64_t local_offset = 0;   // within the next piece
  uint64_t remote_offset = 0;  // within the next range
  uint32_t outstanding = 0;    // work requests
  bool proven = false;         // nothing is left to be posted that proves it, see post_proof()
  uint64_t length = 0;
  Piece local[most_pieces];
  RemoteMemory remote[most_pieces];
  const RegisteredRegion* regions[most_pieces];

  [[nodiscard]] bool is_posted() const noexcept { return next_remote == remote_count && proven; }
};

// Memory that the peer may access on behalf of one operation: exactly that, in one direction, through
// this queue pair. A window, or a registration of its own where the device has no windows.
struct ExposedMemory {
  static constexpr unsigned most_pieces = 32;
  enum class State : uint8_t { exposed, to_conceal, concealing, ended };
  std::atomic<uint32_t> next_free{0};
  ExposedMemory* next = nullptr;  // of the channel's list
  ExposedMemory** previous = nullptr;
  State state = State::ended;
  uint32_t channel_number = 0;  // of the queue pair
  unsigned count = 0;
  unsigned outstanding = 0;  // invalidations by this end
  uint32_t invalid = 0;      // bit i: window i has been invalidated by the other end
  uint32_t windows[most_pieces];
  const RegisteredRegion* regions[most_pieces];
};

// Keys as peers are told of them: that of the window, which exposure it is part of, and through which queue
// pair it can be used.
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

struct MemoryWindow {
  std::atomic<uint32_t> next_free{0};
  uint32_t key = 0;                // by which the peer may use it
  ibv_mw* window = nullptr;        // bound to a part of a region; kept from use to use
  ibv_mr* registration = nullptr;  // or this, of one use
};

// What is done with messages that arrive over a queue pair.
enum class Receiving : uint8_t {
  keeps,  // they wait for the last datagram, which has yet to come
  hands_up,
  drops,  // they come again as datagrams
};

struct Channel {
  static constexpr uint32_t send_requests = 128;  // a power of two
  // Left for what must not wait for messages: ends of exposures, remote accesses.
  static constexpr uint32_t reserved_requests = 16;
  static constexpr uint32_t signal_interval = 16;
  static constexpr uint32_t spare_slots_kept = 2 * signal_interval;

  uint32_t index = 0;   // in the table of channels: the other end sends it with each message
  uint32_t number = 0;  // QPN, also when the queue pair is gone
  std::unique_ptr<QueuePair> queue_pair;

  // --- the poller
  bool connected = false;  // the other end's address is known
  Receiving receiving = Receiving::keeps;
  static constexpr uint32_t none_kept = UINT32_MAX;
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
  uint32_t posted = 0;  // work requests, modulo 2^32
  uint32_t retired = 0;
  uint32_t unsignalled = 0;
  uint64_t messages_posted = 0;
  uint64_t messages_retired = 0;
  RemoteAccess* waiting = nullptr;  // with something left to post
  RemoteAccess** waiting_tail = &waiting;
  uint32_t accesses = 0;  // work requests of remote accesses that go on
  ExposedMemory* exposures = nullptr;
  uint32_t exposures_to_conceal = 0;
  HeldRequests held;
  uint32_t spare_count = 0;
  uint32_t spare_slots[spare_slots_kept];  // small ones that have served, for the next messages
  uint64_t forgone =
      0;  // key of memory of the peer: the next message invalidates the window; 0: none
  PostedRequest requests[send_requests];

  [[nodiscard]] uint32_t room() const noexcept { return send_requests - (posted - retired); }
  // Accesses to memory go on, by either end: they may take longer than anything may be idle.
  [[nodiscard]] bool has_memory_in_use() const noexcept {
    return accesses != 0 || waiting != nullptr || exposures != nullptr;
  }
};

// How messages to a peer travel now.
enum class Path : uint8_t {
  datagrams,
  changing,  // the peer has yet to be told which datagram is the last
  queue_pair,
  stopping,  // what the queue pair did not deliver is to be sent again
};

struct VerbsLink final : Link {
  static constexpr uint8_t owes_offer = 1;
  static constexpr uint8_t owes_decline = 2;
  static constexpr uint8_t owes_change = 4;
  static constexpr uint8_t owes_resume = 8;
  static constexpr uint8_t owes_loss = 16;
  static constexpr uint8_t owes_denial = 32;  // resume, for a queue pair that is not known here

  SpinLock lock;  // before those of the layer below
  // --- under it
  Link* datagrams = nullptr;  // of the layer below; never another one
  Path path = Path::datagrams;
  Channel* channel = nullptr;
  bool wishes = false;                 // for a queue pair; told to the poller
  const char* stop_because = nullptr;  // told to the poller
  uint32_t wish_after = 0;             // messages until the next wish
  uint32_t holds = 0;                  // hold() without let_go()
  uint32_t resend_head = UINT32_MAX;   // slots, in order, through resend_next
  uint32_t resend_tail = UINT32_MAX;
  uint64_t resend_first = 0;  // number of the first one among the messages of the channel

  // --- the poller
  uint8_t owed = 0;     // messages of kind connection that found no room yet
  bool listed = false;  // among those with something to do
  uint32_t declined_number = 0;
  uint32_t denied_number = 0;  // that the peer takes for ours
  uint32_t denied_peer_number = 0;
  uint32_t failures = 0;  // of queue pairs to this peer
};

}  // namespace lintel

// The state of one peer: a few hundred bytes. Frames are in pools that all connections share.
//
// A connection is idle until something is to be sent, opening while the handshake runs, then
// established, and failed in the end. connect() makes a failed one idle again. `lock` guards
// everything but what is marked as the poller's. Only the poller moves it to established and to
// failed, so the poller may read what belongs to those states without the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "reliable/frame.h"
#include "reliable/frame_seal.h"
#include "reliable/peer_silence.h"
#include "reliable/pending_acknowledgement.h"
#include "reliable/reassembly.h"
#include "reliable/receive_window.h"
#include "reliable/reply_habit.h"
#include "reliable/send_window.h"
#include "reliable/session_keys.h"
#include "transport/packet_link.h"
#include "transport/transport.h"
#include "util/spin_lock.h"

namespace lintel {

enum class ConnectionState : uint8_t { idle, opening, established, failed };

// Exists only while a connection is opening.
struct Opening {
  uint8_t nonce[nonce_bytes];
  uint64_t cookie = 0;  // of the target's challenge
  bool challenged = false;
  bool routed = false;       // the link knows where the peer is
  bool unreachable = false;  // the link says that it will never be
  // An answer that says no but proves nothing: somebody else may have sent it. A good answer that
  // comes soon goes before it.
  RefuseCause refusal = RefuseCause::none;
  uint64_t refused_ns = 0;
  SessionKeys keys;
  unsigned attempts = 0;
  uint64_t started_ns = 0;
  uint64_t next_attempt_ns = 0;
};

// An acknowledgement that came and has not been looked at yet.
struct DeferredAcknowledgement {
  bool pending = false;
  uint8_t delay = 0;
  uint32_t acknowledged = 0;
  uint64_t came_ns = 0;
};

// For a list of connections.
struct ConnectionHook {
  Connection* next = nullptr;
  bool linked = false;
};

struct Connection : Link {
  std::atomic<uint32_t> next_free{0};  // for the arena

  SpinLock lock;
  std::atomic<ConnectionState> state{ConnectionState::idle};
  bool announced = false;            // poller: the sink knows this incarnation
  bool acknowledge_at_once = false;  // poller: after this burst
  bool reported = false;             // its failure: nobody refers to it, its place may be taken
  bool held_back = false;  // an acknowledgement of a message waits for a message to travel with
  bool release_awaited = false;  // payloads were referred to whose owner waits for their release
  uint32_t frame_bytes = 0;      // of the largest frame that both sides and the route take

  Route route;
  uint64_t number = 0;       // ours: in frames to us
  uint64_t peer_number = 0;  // the peer's, or that of its last connection: in frames to it
  uint64_t cookie = 0;       // with which that was opened, if the peer called
  uint32_t send_seed = 0;    // of checks
  uint32_t receive_seed = 0;

  // Null: frames are not sealed. Made before it is established, and released when it has failed.
  std::unique_ptr<SecureChannel> secure;
  uint32_t seal_bytes = 0;  // of a tag behind each frame
  bool encrypts = false;

  SendWindow send;
  ReceiveWindow receive;
  HalfMessage half;  // poller: eager message of several frames
  PendingAcknowledgement pending;
  DeferredAcknowledgement deferred;
  ReplyHabit habit;
  PeerSilence silence;
  uint64_t retry_ns = UINT64_MAX;  // when the link was full
  std::unique_ptr<Opening> opening;

  ConnectionHook with_timer;     // ConnectionTimers; linked is under the lock, next the list's
  ConnectionHook ended;          // ConnectionTable
  ConnectionHook touched;        // poller: Acknowledger
  ConnectionHook with_deferred;  // poller: ReceivedAcknowledgements

  [[nodiscard]] bool is(ConnectionState expected) const noexcept {
    return state.load(std::memory_order_acquire) == expected;
  }
  [[nodiscard]] bool is_established() const noexcept { return is(ConnectionState::established); }
};

// A list that each connection is in once at most, last in first out. For one thread.
template <ConnectionHook Connection::*hook>
class ConnectionStack {
 public:
  [[nodiscard]] bool is_empty() const noexcept { return top_ == nullptr; }
  void push(Connection& connection) noexcept {
    if ((connection.*hook).linked) return;
    connection.*hook = {top_, true};
    top_ = &connection;
  }
  // It must not be empty.
  [[nodiscard]] Connection& pop() noexcept {
    Connection& connection = *top_;
    top_ = (connection.*hook).next;
    (connection.*hook).linked = false;
    return connection;
  }

 private:
  Connection* top_ = nullptr;
};

}  // namespace lintel

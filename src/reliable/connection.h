// The state of one peer: a few hundred bytes. Frames are in pools that all connections share.
//
// A connection is idle until something is to be sent, opening while the handshake runs, then
// established, and failed in the end. connect() makes a failed one idle again. `lock` guards
// everything but what is marked as the poller's. Only the poller moves it to established and to
// failed, so the poller may read what belongs to those states without the lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "reliable/frame.h"
#include "reliable/frame_seal.h"
#include "reliable/own_pauses.h"
#include "reliable/reassembly.h"
#include "reliable/receive_window.h"
#include "reliable/reply_habit.h"
#include "reliable/send_window.h"
#include "reliable/session_keys.h"
#include "transport/packet_link.h"
#include "transport/transport.h"
#include "util/assert.h"
#include "util/spin_lock.h"
#include "util/thread_annotations.h"

namespace lintel {

// `since` may be a little later than the poller's `now`, because other threads read the clock, too.
[[nodiscard]] inline uint64_t elapsed_ns(uint64_t since, uint64_t now) noexcept {
  return now > since ? now - since : 0;
}

// Records how long a peer has been silent, and whether it has to answer. Message path.
class PeerSilence {
 public:
  // A hint is a report that the peer has no socket. The peer may be about to start, or the report
  // may be forged. So hints count after this time, and this many of them, without a frame of the
  // peer.
  static constexpr uint64_t believe_hints_ns = 1'000'000'000;
  // The same time for peers of this node: the kernel itself reports, which cannot be forged.
  static constexpr uint64_t believe_own_node_ns = 10'000'000;
  static constexpr uint8_t believed_hints = 4;

  void heard(uint64_t now_ns) noexcept {
    heard_ns_ = now_ns;
    awaited_since_ns_ = 0;
    hints_ = 0;
  }
  // The peer has to answer from now on.
  void await(uint64_t now_ns) noexcept {
    if (awaited_since_ns_ == 0) awaited_since_ns_ = now_ns;
  }
  void asked(uint64_t now_ns) noexcept { asked_ns_ = now_ns; }
  void excuse(const OwnPauses::Excuse& excuse, uint64_t now_ns) noexcept {
    if (awaited_since_ns_ != 0) awaited_since_ns_ = excuse.moved(awaited_since_ns_, now_ns);
    hints_ = 0;
  }
  void hint(uint64_t now_ns) noexcept {
    if (hints_ == 0) hinted_since_ns_ = now_ns;
    if (hints_ < believed_hints) ++hints_;
  }

  [[nodiscard]] uint64_t lasts_ns(uint64_t now_ns) const noexcept {
    return elapsed_ns(heard_ns_, now_ns);
  }
  // Returns for how long an answer has been awaited; 0 if none is.
  [[nodiscard]] uint64_t awaited_ns(uint64_t now_ns) const noexcept {
    return awaited_since_ns_ != 0 ? elapsed_ns(awaited_since_ns_, now_ns) : 0;
  }
  [[nodiscard]] uint64_t last_sign_ns() const noexcept { return std::max(heard_ns_, asked_ns_); }
  [[nodiscard]] bool is_unreachable(bool on_own_node, uint64_t now_ns) const noexcept {
    return hints_ == believed_hints && elapsed_ns(hinted_since_ns_, now_ns) >
                                           (on_own_node ? believe_own_node_ns : believe_hints_ns);
  }

 private:
  uint64_t heard_ns_ = 0;
  uint64_t awaited_since_ns_ = 0;  // 0 if no answer is awaited
  uint64_t asked_ns_ = 0;
  uint64_t hinted_since_ns_ = 0;
  uint8_t hints_ = 0;  // hints since the last frame, at most believed_hints
};

// Record of the frames of a peer that have arrived and were not acknowledged yet. Message path.
class PendingAcknowledgement {
 public:
  static constexpr uint64_t age_unit_ns = 4096;  // unit of FrameHeader::ack_delay
  static constexpr uint64_t longest_put_off_ns = 100'000'000;

  // True: an acknowledgement is due at deadline_ns(), and none was due before.
  [[nodiscard]] bool arrived(uint32_t bytes, uint64_t now_ns, uint64_t delay_ns) noexcept {
    newest_arrival_ns_ = now_ns;
    bytes_ += bytes;
    if (deadline_ns_ != UINT64_MAX) return false;
    deadline_ns_ = now_ns + delay_ns;
    return true;
  }
  // An acknowledgement was sent, by itself or with a frame.
  void went() noexcept {
    bytes_ = 0;
    deadline_ns_ = UINT64_MAX;
  }
  // Sets the time of the next attempt after the link was full. The longer the link is full, the
  // longer the time between attempts: each may use up a counter of frames (frame_seal.h).
  void put_off(uint64_t now_ns, uint64_t least_ns) noexcept {
    const uint64_t gap_ns = now_ns > refused_ns_ ? now_ns - refused_ns_ : 0;
    refused_ns_ = now_ns;
    deadline_ns_ = now_ns + (gap_ns > 2 * longest_put_off_ns
                                 ? least_ns
                                 : std::max(least_ns, std::min(2 * gap_ns, longest_put_off_ns)));
  }
  // Whether to wait until deadline_ns() with another attempt: nothing has arrived since the last
  // one.
  [[nodiscard]] bool is_put_off(uint64_t now_ns) const noexcept {
    return now_ns < deadline_ns_ && deadline_ns_ != UINT64_MAX && refused_ns_ != 0 &&
           refused_ns_ >= newest_arrival_ns_;
  }
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] uint64_t deadline_ns() const noexcept { return deadline_ns_; }
  // Returns the age of the newest arrival, in the unit of FrameHeader::ack_delay.
  [[nodiscard]] uint8_t age(uint64_t now_ns) const noexcept {
    if (newest_arrival_ns_ == 0 || now_ns <= newest_arrival_ns_) return 0;
    return static_cast<uint8_t>(
        std::min<uint64_t>((now_ns - newest_arrival_ns_) / age_unit_ns, 255));
  }

 private:
  uint64_t bytes_ = 0;
  uint64_t newest_arrival_ns_ = 0;
  uint64_t deadline_ns_ = UINT64_MAX;
  uint64_t refused_ns_ = 0;  // time at which the link was last full
};

enum class ConnectionState : uint8_t { idle, opening, established, failed };

// Exists only while a connection is opening.
struct Opening {
  uint8_t nonce[nonce_bytes];
  uint64_t cookie = 0;  // cookie of the target's challenge
  bool challenged = false;
  bool routed = false;       // the link has found a route to the peer
  bool unreachable = false;  // the link reports that there is no way to it
  // A refusal without a proof: another process may have sent it. An acceptance that comes soon
  // overrides it.
  RefuseCause refusal = RefuseCause::none;
  uint64_t refused_ns = 0;
  SessionKeys keys;
  unsigned attempts = 0;
  uint64_t started_ns = 0;
  uint64_t next_attempt_ns = 0;

  void excuse(const OwnPauses::Excuse& excuse, uint64_t now_ns) noexcept {
    started_ns = excuse.moved(started_ns, now_ns);
    refused_ns = excuse.moved(refused_ns, now_ns);
  }
};

// An acknowledgement that came and has not been looked at yet.
struct DeferredAcknowledgement {
  bool pending = false;
  uint8_t delay = 0;
  uint32_t acknowledged = 0;
  uint64_t came_ns = 0;
};

// Progress of a frame that is sent in parts: the link has taken its body up to `offset`.
struct PartProgress {
  uint32_t sequence = 0;
  uint32_t offset = 0;
};

// Link of a list of connections.
struct ConnectionHook {
  Connection* next = nullptr;
  bool linked = false;
};

struct Connection : Link {
  std::atomic<uint32_t> next_free{0};  // used by the arena

  SpinLock lock;
  std::atomic<ConnectionState> state{ConnectionState::idle};
  bool announced = false;            // poller: the sink was given this incarnation
  bool acknowledge_at_once = false;  // poller: after this burst
  bool reported = false;  // the failure was reported to the sink: the object may be reused
  // An acknowledgement of a message waits for a message to travel with.
  bool held_back LINTEL_GUARDED_BY(lock) = false;
  // Payloads were referred to whose owner waits for their release.
  bool release_awaited LINTEL_GUARDED_BY(lock) = false;
  uint32_t probe_of_peer = 0;    // number of the peer's last probe, for acknowledgements
  uint32_t frame_bytes = 0;      // largest frame that both sides and the path take
  uint32_t most_data_bytes = 0;  // longest message of kind data that was cut for the first path

  Route route;
  uint64_t number = 0;       // ours: in frames to us
  uint64_t peer_number = 0;  // the peer's, or that of its last connection: in frames to it
  uint64_t incarnation = 0;  // poller: incarnation of the peer; 0: not connected yet
  uint64_t cookie = 0;       // cookie with which the peer opened the connection, if it did
  uint32_t send_seed = 0;    // seed of checks
  uint32_t receive_seed = 0;

  // Null: frames are not sealed. Made before the connection is established, and released when it
  // has failed.
  std::unique_ptr<SecureChannel> secure;
  uint32_t seal_bytes = 0;  // length of the tag behind each frame; 0: frames are not sealed
  bool encrypts = false;
  bool leaves_unchecked = false;  // frames with payloads in place carry frame_unchecked

  SendWindow send LINTEL_GUARDED_BY(lock);
  ReceiveWindow receive;
  HalfMessage half;  // poller: eager message of several frames
  PendingAcknowledgement pending LINTEL_GUARDED_BY(lock);
  DeferredAcknowledgement deferred LINTEL_GUARDED_BY(lock);
  ReplyHabit habit LINTEL_GUARDED_BY(lock);
  PeerSilence silence LINTEL_GUARDED_BY(lock);
  // Time of the next attempt after the link was full, or after the peer had no room for parts.
  uint64_t retry_ns LINTEL_GUARDED_BY(lock) = UINT64_MAX;
  PartProgress part_sent LINTEL_GUARDED_BY(lock);
  FrameBuffer* parts = nullptr;  // poller: a frame whose parts are arriving, see FrameParts
  std::unique_ptr<Opening> opening;

  ConnectionHook with_timer;     // ConnectionTimers; linked is under the lock, next the list's
  ConnectionHook ended;          // ConnectionTable
  ConnectionHook touched;        // poller: Acknowledger
  ConnectionHook with_deferred;  // poller: ReceivedAcknowledgements

  [[nodiscard]] bool is(ConnectionState expected) const noexcept {
    return state.load(std::memory_order_acquire) == expected;
  }
  // idle -> opening -> established -> failed -> idle; a peer that calls
  // establishes an idle one; one that is opening may fail.
  void move_to(ConnectionState next) noexcept LINTEL_REQUIRES(lock) {
    LINTEL_ASSERT(may_follow(state.load(std::memory_order_relaxed), next));
    state.store(next, std::memory_order_release);
  }
  [[nodiscard]] bool is_established() const noexcept { return is(ConnectionState::established); }
  // Sets the length of frames that the path takes.
  void set_frame_bytes(uint32_t bytes) noexcept LINTEL_REQUIRES(lock) {
    frame_bytes = bytes;
    max_data_bytes.store((bytes - message_frame_overhead) & ~7u, std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] static bool may_follow(ConnectionState state, ConnectionState next) noexcept {
    switch (next) {
      case ConnectionState::idle:
        return state == ConnectionState::idle || state == ConnectionState::failed;
      case ConnectionState::opening:
        return state == ConnectionState::idle;
      case ConnectionState::established:
        return state == ConnectionState::idle || state == ConnectionState::opening;
      case ConnectionState::failed:
        return state == ConnectionState::opening || state == ConnectionState::established;
    }
    return false;
  }
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
  // Removes the top. The list must not be empty.
  [[nodiscard]] Connection& pop() noexcept {
    LINTEL_ASSERT(top_ != nullptr && (top_->*hook).linked);
    Connection& connection = *top_;
    top_ = (connection.*hook).next;
    (connection.*hook).linked = false;
    return connection;
  }

 private:
  Connection* top_ = nullptr;
};

}  // namespace lintel

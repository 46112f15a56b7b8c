// The state of one peer: a few hundred bytes. Frames are in pools that all connections share.
//
// A connection is idle until something is to be sent, opening while the handshake runs, then
// established, and failed in the end. connect() makes a failed one idle again. Each part has a
// class that alone changes it. `lock` guards everything but what is marked as the poller's.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "reliable/connection_life.h"
#include "reliable/frame_protection.h"
#include "reliable/peer_silence.h"
#include "reliable/receive_window.h"
#include "reliable/reply_predictor.h"
#include "reliable/send_window.h"
#include "transport/transport.h"
#include "util/assert.h"
#include "util/lock.h"
#include "util/spin_lock.h"
#include "util/thread_annotations.h"

namespace lintel {

// For a list of connections.
struct ConnectionHook {
  Connection* next = nullptr;
  bool linked = false;
};

struct Connection : Link {
  std::atomic<uint32_t> next_free{0};  // used by the arena

  SpinLock lock;
  bool acknowledges_soon = false;  // poller: Acknowledger, with `touched`
  ConnectionLife life;
  FrameProtection protection;
  SendingHalf send LINTEL_GUARDED_BY(lock);
  ReceivingHalf receive;
  PendingAcknowledgement pending LINTEL_GUARDED_BY(lock);
  ReplyPredictor replies LINTEL_GUARDED_BY(lock);
  PeerSilence silence LINTEL_GUARDED_BY(lock);

  ConnectionHook with_timer;  // ConnectionTimers; linked is under the lock, next the list's
  ConnectionHook ended;       // ConnectionTable
  ConnectionHook touched;     // poller: Acknowledger

  // Whether a frame from there is the peer's.
  [[nodiscard]] bool has_path_to(const LinkAddress& address) noexcept {
    const LockGuard guard(lock);
    return life.route().address == address || send.window.has_path_to(address);
  }
  // For Link, after the length of its frames has changed.
  void publish_data_bytes() noexcept LINTEL_REQUIRES(lock) {
    max_data_bytes.store(send.data_bytes(), std::memory_order_relaxed);
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

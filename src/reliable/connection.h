// What is kept about one peer: a few hundred bytes; frames are in pools that all connections share.
//
// A connection is idle until something is to be sent, opening while the handshake runs, established,
// and at last failed; connect() makes a failed one idle again. `lock` guards the windows and the
// timers. Only the poller moves it to established and to failed, so that the poller may read what
// belongs to those states without the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "reliable/frame.h"
#include "reliable/reassembly.h"
#include "reliable/receive_window.h"
#include "reliable/reply_habit.h"
#include "reliable/send_window.h"
#include "transport/packet_link.h"
#include "transport/transport.h"
#include "util/spin_lock.h"

namespace lintel {

// Other threads take the time, too: `since` may be a little later than the poller's `now`.
[[nodiscard]] inline uint64_t elapsed_ns(uint64_t since, uint64_t now) noexcept {
  return now > since ? now - since : 0;
}

enum class ConnectionState : uint8_t { idle, opening, established, failed };

// Exists only while a connection is opening.
struct Opening {
  uint8_t nonce[nonce_bytes];
  uint64_t cookie = 0;  // of the target's challenge
  bool challenged = false;
  bool routed = false;       // the link knows where the peer is
  bool unreachable = false;  // the link says that it will never be
  unsigned attempts = 0;
  uint64_t started_ns = 0;
  uint64_t next_attempt_ns = 0;
};

struct Connection : Link {
  std::atomic<uint32_t> next_free{0};  // for the arena

  SpinLock lock;
  std::atomic<ConnectionState> state{ConnectionState::idle};
  bool announced = false;  // poller: the sink knows this incarnation
  bool listed = false;     // under the lock: on the list of those with timers, or about to be
  bool touched = false;    // poller: on the list of those to acknowledge after this burst
  RefuseCause refused = RefuseCause::none;
  uint8_t unreachable_hints = 0;  // since the peer was last heard
  uint32_t frame_bytes = 0;       // of the largest frame that both sides and the route take

  Route route;
  uint64_t number = 0;       // ours: in frames to us
  uint64_t peer_number = 0;  // the peer's: in frames to it
  uint64_t peer_incarnation = 0;
  uint32_t send_seed = 0;
  uint32_t receive_seed = 0;

  SendWindow send;
  ReceiveWindow receive;
  std::atomic<uint64_t> data_frames_sent{0};  // of all incarnations; written under the lock
  HalfMessage half;                           // poller: eager message of several frames
  uint64_t probed_ns = 0;  // when the peer was last asked to go on with what it began
  // The newest acknowledgement that came and was put off until there is time for it, see acknowledge.cc.
  bool put_off = false;
  bool on_put_off_list = false;  // poller
  uint8_t put_off_delay = 0;
  uint32_t put_off_acknowledged = 0;
  uint64_t put_off_ns = 0;
  ReplyHabit habit;
  bool held_back = false;  // an acknowledgement of a message waits for a message to travel with
  bool release_awaited =
      false;  // payloads were referred to whose owner waits for them to be released
  uint32_t unacknowledged_bytes = 0;  // arrived since the last acknowledgement went out
  bool ack_now = false;               // poller: when this burst is done
  uint64_t newest_arrival_ns = 0;
  uint64_t ack_deadline_ns = UINT64_MAX;
  uint64_t last_heard_ns = 0;
  uint64_t hinted_since_ns = 0;
  uint64_t waiting_since_ns = 0;   // for the peer to say anything; 0: it owes us nothing
  uint64_t retry_ns = UINT64_MAX;  // when the link was full

  std::unique_ptr<Opening> opening;
  Connection* next_listed = nullptr;
  Connection* next_touched = nullptr;
  Connection* next_put_off = nullptr;
};

}  // namespace lintel

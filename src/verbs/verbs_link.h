// What this process knows of one peer, and how messages to it travel.
#pragma once

#include <cstdint>

#include "transport/transport.h"
#include "util/spin_lock.h"

namespace lintel {

struct Channel;

// How messages to a peer travel now.
enum class Path : uint8_t {
  datagrams,
  changing,  // the message that names the last datagram is not sent yet
  queue_pair,
  stopping,  // what the queue pair did not deliver is to be sent again
};

struct VerbsLink final : Link {
  static constexpr uint8_t pending_offer = 1;
  static constexpr uint8_t pending_decline = 2;
  static constexpr uint8_t pending_change = 4;
  static constexpr uint8_t pending_resume = 8;
  static constexpr uint8_t pending_loss = 16;
  static constexpr uint8_t pending_denial = 32;  // resume, for a queue pair that is not known here

  SpinLock lock;  // before those of the layer below
  // --- under it
  Link* datagrams = nullptr;  // of the layer below; perhaps another one after a failure
  Path path = Path::datagrams;
  Channel* channel = nullptr;
  bool wishes = false;                 // for a queue pair; for the poller
  const char* stop_because = nullptr;  // for the poller
  uint32_t wish_after = 0;             // messages until the next wish
  uint32_t holds = 0;                  // hold() without let_go()
  uint32_t resend_head = UINT32_MAX;   // slots, in order, through SendSlots::next()
  uint32_t resend_tail = UINT32_MAX;
  uint64_t resend_first = 0;  // number of the first one among the messages of the channel

  // --- the poller
  uint8_t pending = 0;  // messages of kind connection that found no room yet
  bool listed = false;  // among those with something to do
  uint32_t declined_number = 0;
  uint32_t denied_number = 0;  // that the peer takes for ours
  uint32_t denied_peer_number = 0;
  uint32_t failures = 0;  // of queue pairs to this peer
};

}  // namespace lintel

// Settings and counters of a reliable transport, for its parts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "reliable/frame.h"
#include "transport/packet_link.h"
#include "util/clock.h"
#include "util/counter.h"

namespace lintel {

struct ReliableSettings {
  uint32_t uid = 0;     // usage id of this process
  std::string job_key;  // empty: there is none
  // Without a job key: what processes of this user on this node know. Null: every process that
  // claims to be of this user is admitted.
  std::shared_ptr<const std::string> node_secret;
  NetworkSecurity security = NetworkSecurity::off;  // needs a job key or a secret of the node
  unsigned key_epoch_bits = 22;                     // SealSettings
  uint64_t first_counter = 1;
  uint64_t memory_bytes = 32 << 20;           // of frames that are kept, of all peers together
  uint64_t peer_timeout_ns = 10'000'000'000;  // of silence, while an answer is due
  uint64_t shortest_timeout_ns = 1'000'000;   // of retransmission
  uint64_t ack_delay_ns = 50'000;             // an acknowledgement waits for a frame to ride on
  uint64_t quiet_after_ns = 200'000;          // without frames the link is not asked any more
  bool holds_acknowledgements = true;         // of messages, for answers: AcknowledgementHold
  bool polls_always = false;                  // asks the link in each poll: that is cheap
  uint32_t most_connections = 1u << 18;
  uint32_t most_of_node = 1u << 14;  // connections that processes of one node may open
  bool reuses_places = true;         // of connections that ended or are silent, when all are taken
  uint32_t first_sequence = 1;
  uint64_t incarnation = 0;  // of this process; 0: a new one
  uint64_t node = 0;         // number_of_machine(); 0: peers with the same nid are on this node
  Clock clock = quick_clock();

  // A peer that sent nothing for this time is sent a probe.
  [[nodiscard]] uint64_t keepalive_ns() const noexcept {
    return std::min<uint64_t>(peer_timeout_ns / 16, 1'000'000'000);
  }
  // A connection that was silent for this time may be replaced if no place is left. Longer than the
  // life of a cookie.
  [[nodiscard]] uint64_t idle_timeout_ns() const noexcept {
    return std::max<uint64_t>(2 * peer_timeout_ns, 30'000'000'000);
  }
};

// A copy is what was counted so far.
struct ReliableCounters {
  SharedCounter retransmissions;
  SharedCounter timeouts;        // of retransmission
  SharedCounter datagrams_sent;  // PTL_MD_UNRELIABLE
  SharedCounter datagrams_received;
  SharedCounter acks_sent;         // that found no frame to ride on
  SharedCounter duplicates;        // frames that had come already
  SharedCounter out_of_order;      // frames that came before others sent earlier
  SharedCounter dropped_for_room;  // frames that found no buffer
  SharedCounter damaged;           // the check or the tag was wrong
  SharedCounter replayed;          // sealed frames that had come already, or are very old
  SharedCounter malformed;         // too short, of another version, contradictory
  SharedCounter strangers;         // frames that belong to no connection
  SharedCounter unanswered;        // hellos and such beyond AnswerLimit
  SharedCounter resets_received;
  SharedCounter handshakes_refused;  // by us
  SharedCounter paths_narrowed;      // PathMtu
  SharedCounter paths_widened;
  SharedCounter path_probes;
  SharedCounter frames_in_parts;  // that were longer than the path takes
  SharedCounter connections_opened;
  SharedCounter connections_failed;
};

class ConnectionTable;
class ConnectionTimers;
class FramePool;
class Reassembly;

// What the parts of a transport share.
struct ReliableContext {
  PacketLink& link;
  const ReliableSettings& settings;
  ReliableCounters& counters;
  FramePool& sent;      // frames until they are acknowledged
  FramePool& received;  // frames that came before others sent earlier, or in parts
  Reassembly& reassembly;
  ConnectionTimers& timers;
  ConnectionTable& table;
};

}  // namespace lintel

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
  // Secret that processes of this user on this node share; used without a job key. Null: every
  // process that claims to be of this user is admitted.
  std::shared_ptr<const std::string> node_secret;
  NetworkSecurity security = NetworkSecurity::off;  // needs a job key or a secret of the node
  unsigned key_epoch_bits = 22;                     // SealSettings
  uint64_t first_counter = 1;
  uint64_t memory_bytes = 32 << 20;           // memory of frames that are kept, of all peers
  uint64_t peer_timeout_ns = 10'000'000'000;  // silence after which a peer fails that has to answer
  uint64_t shortest_timeout_ns = 1'000'000;   // minimum timeout of retransmission
  uint64_t ack_delay_ns = 50'000;             // maximum delay of an acknowledgement
  uint64_t quiet_after_ns = 200'000;          // time without frames after which polling stops
  bool holds_acknowledgements = true;         // an acknowledgement may wait: Acknowledger::holds()
  bool polls_always = false;                  // the link is always polled: a poll is cheap
  uint32_t most_connections = 1u << 18;
  uint32_t most_of_node = 1u << 14;  // connections that processes of one node may open
  bool reuses_places = true;         // places of ended and silent connections are reused
  uint32_t first_sequence = 1;
  uint64_t incarnation = 0;  // incarnation of this process; 0: a new one
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

// Counters. A copy contains the current values.
struct ReliableCounters {
  SharedCounter retransmissions;
  SharedCounter timeouts;        // timeouts of retransmission
  SharedCounter datagrams_sent;  // messages with PTL_MD_UNRELIABLE
  SharedCounter datagrams_received;
  SharedCounter acks_sent;         // acknowledgements that did not travel with another frame
  SharedCounter duplicates;        // frames that had come already
  SharedCounter out_of_order;      // frames that came before others sent earlier
  SharedCounter dropped_for_room;  // frames that found no buffer
  SharedCounter damaged;           // frames whose check or tag was wrong
  SharedCounter replayed;          // sealed frames that had come already, or are very old
  SharedCounter malformed;         // frames that are too short, of another version, contradictory
  SharedCounter strangers;         // frames that belong to no connection
  SharedCounter unanswered;        // hellos and such beyond AnswerLimit
  SharedCounter resets_received;
  SharedCounter handshakes_refused;  // handshakes that this side refused
  SharedCounter paths_narrowed;      // see PathMtu
  SharedCounter paths_widened;
  SharedCounter path_probes;
  SharedCounter paths_lost;  // paths that stopped working while others worked
  SharedCounter paths_back;
  SharedCounter frames_in_parts;  // frames that were longer than the path takes
  SharedCounter connections_opened;
  SharedCounter connections_failed;
};

class ConnectionTable;
class ConnectionTimers;
class FramePool;
class Reassembly;

// References that the parts of a transport share.
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

// Actions of timers: retransmission, delayed acknowledgements, attempts to connect, and probes of
// silent peers that have to answer. The poller, no lock held.
#pragma once

#include "reliable/data_receiver.h"
#include "reliable/handshake.h"
#include "reliable/path_watch.h"

namespace lintel {

class PeerWatch {
 public:
  PeerWatch(const ReliableContext& context, ConnectionTable& table, ConnectionTimers& timers,
            Handshake& handshake, ConnectionCloser& closer, Transmitter& transmitter,
            ReceivedAcknowledgements& received, DataReceiver& data, PathWatch& paths) noexcept
      : context_(context),
        pauses_(context.settings.peer_timeout_ns),
        table_(table),
        timers_(timers),
        handshake_(handshake),
        closer_(closer),
        transmitter_(transmitter),
        received_(received),
        data_(data),
        paths_(paths) {}

  // `reads`: frames have just come, and more may wait.
  void run_timers(uint64_t now_ns, bool reads) noexcept LINTEL_REQUIRES(polling);
  // Checks peers from which the core expects an answer. Silent ones are probed, and fail without an
  // answer.
  void check(Link* const* links, unsigned count, uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);

 private:
  void excuse_all(uint64_t late_ns, uint64_t now_ns) noexcept;
  void take_hints(uint64_t now_ns) noexcept;
  uint64_t look(Connection& connection, uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);
  uint64_t look_locked(Connection& connection, uint64_t now_ns, Link::Failure& failure) noexcept
      LINTEL_REQUIRES(connection.lock);
  uint64_t look_at_established(Connection& connection, bool unreachable, uint64_t now_ns,
                               const char*& failure) noexcept LINTEL_REQUIRES(connection.lock);
  uint64_t look_at_unfinished(Connection& connection, bool unreachable, uint64_t now_ns,
                              const char*& failure) noexcept LINTEL_REQUIRES(connection.lock);
  bool is_gone(Connection& connection, uint64_t awaited_ns) noexcept
      LINTEL_REQUIRES(connection.lock);

  const ReliableContext context_;
  OwnPauses pauses_;
  uint64_t looked_ns_ = 0;  // last run_timers() or check()
  unsigned put_off_ = 0;    // polls since a pause, in which frames came
  ConnectionTable& table_;
  ConnectionTimers& timers_;
  Handshake& handshake_;
  ConnectionCloser& closer_;
  Transmitter& transmitter_;
  ReceivedAcknowledgements& received_;
  DataReceiver& data_;
  PathWatch& paths_;
};

}  // namespace lintel

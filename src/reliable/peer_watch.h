// The work of timers that are due: retransmission, delayed acknowledgements, attempts to connect,
// probes of the path, and of silent peers that have to answer. The poller, no lock held.
#pragma once

#include "reliable/data_receiver.h"
#include "reliable/handshake.h"
#include "util/log.h"

namespace lintel {

class PeerWatch {
 public:
  PeerWatch(const ReliableContext& context, Handshake& handshake, ConnectionCloser& closer,
            Transmitter& transmitter, DataReceiver& data) noexcept
      : context_(context),
        pauses_(context.settings.peer_timeout_ns),
        handshake_(handshake),
        closer_(closer),
        transmitter_(transmitter),
        data_(data) {}

  // `reads`: frames have just come, and more may wait.
  void run_timers(uint64_t now_ns, bool reads) noexcept LINTEL_REQUIRES(polling);
  // Checks peers from which the core expects an answer. Silent ones are probed, and fail without an
  // answer.
  void check(Link* const* links, unsigned count, uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);

 private:
  void extend_all(uint64_t late_ns, uint64_t now_ns) noexcept;
  void take_unreachable(uint64_t now_ns) noexcept;
  uint64_t run(Connection& connection, uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);
  uint64_t run_locked(Connection& connection, uint64_t now_ns, Link::Failure& failure) noexcept
      LINTEL_REQUIRES(connection.lock);
  uint64_t run_established(Connection& connection, bool unreachable, uint64_t now_ns,
                           const char*& failure) noexcept LINTEL_REQUIRES(connection.lock);
  void time_out(Connection& connection, uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  uint64_t keep_alive(Connection& connection, bool unreachable, uint64_t now_ns,
                      const char*& failure) noexcept LINTEL_REQUIRES(connection.lock);
  void follow_mtu(Connection& connection, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  void follow_paths(Connection& connection, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  const char* cause_of_silence(Connection& connection, bool unreachable, uint64_t spent_ns,
                               uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  bool is_gone(Connection& connection, uint64_t awaited_ns) noexcept
      LINTEL_REQUIRES(connection.lock);

  const ReliableContext context_;
  OwnPauses pauses_;
  uint64_t polled_ns_ = 0;       // last run_timers() or check()
  unsigned deferred_polls_ = 0;  // since a pause, in which frames came
  SaidRecently said_;            // narrow and lost paths, by node
  Handshake& handshake_;
  ConnectionCloser& closer_;
  Transmitter& transmitter_;
  DataReceiver& data_;
};

}  // namespace lintel

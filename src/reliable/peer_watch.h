// What is done when timers are due: retransmission, delayed acknowledgements, attempts to connect,
// and probes of silent peers that have to answer. The poller, no lock held.
#pragma once

#include "reliable/data_receiver.h"
#include "reliable/handshake.h"

namespace lintel {

class PeerWatch {
 public:
  PeerWatch(const ReliableContext& context, ConnectionTimers& timers, Handshake& handshake,
            ConnectionCloser& closer, Transmitter& transmitter, ReceivedAcknowledgements& received,
            DataReceiver& data) noexcept
      : context_(context),
        timers_(timers),
        handshake_(handshake),
        closer_(closer),
        transmitter_(transmitter),
        received_(received),
        data_(data) {}

  void run_timers(uint64_t now_ns) noexcept;
  // Peers from which the core expects an answer. Silent ones are probed, and fail without an
  // answer.
  void check(Link* const* links, unsigned count, uint64_t now_ns) noexcept;

 private:
  void take_hints(uint64_t now_ns) noexcept;
  uint64_t look(Connection& connection, uint64_t now_ns) noexcept;
  uint64_t look_locked(Connection& connection, uint64_t now_ns, Link::Failure& failure) noexcept;
  uint64_t look_at_established(Connection& connection, bool unreachable, uint64_t now_ns,
                               const char*& failure) noexcept;
  uint64_t look_at_unfinished(Connection& connection, bool unreachable, uint64_t now_ns,
                              const char*& failure) noexcept;
  bool is_gone(Connection& connection, uint64_t awaited_ns) noexcept;

  const ReliableContext context_;
  ConnectionTimers& timers_;
  Handshake& handshake_;
  ConnectionCloser& closer_;
  Transmitter& transmitter_;
  ReceivedAcknowledgements& received_;
  DataReceiver& data_;
};

}  // namespace lintel

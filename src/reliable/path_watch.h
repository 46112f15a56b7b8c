// Follows what PathMtu finds out about the path to a peer: adapts the connection and sends probes.
// The poller.
#pragma once

#include "reliable/connection.h"
#include "reliable/reliable_settings.h"
#include "reliable/transmitter.h"
#include "util/log.h"

namespace lintel {

class PathWatch {
 public:
  PathWatch(const ReliableContext& context, Transmitter& transmitter) noexcept
      : context_(context), transmitter_(transmitter) {}

  // The connection is established.
  void look(Connection& connection, uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock) {
    if (connection.send.path().is_due(now_ns)) [[unlikely]]
      go_on(connection, now_ns);
  }

 private:
  void go_on(Connection& connection, uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  void say_narrowed(const Connection& connection, uint32_t before, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);

  const ReliableContext context_;
  Transmitter& transmitter_;
  SaidRecently said_;  // lines in the log, by node
};

}  // namespace lintel

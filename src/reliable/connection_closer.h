// The end of a connection: what is kept for it is released, and the sink learns of it. Connection path;
// the poller, no lock held.
#pragma once

#include <mutex>

#include "reliable/message_batch.h"
#include "reliable/reliable_settings.h"
#include "util/log.h"

namespace lintel {

class ConnectionCloser {
 public:
  ConnectionCloser(const ReliableContext& context, FramePool& sent, FramePool& early,
                   Reassembly& reassembly, MessageBatch& batch) noexcept
      : context_(context), sent_(sent), early_(early), reassembly_(reassembly), batch_(batch) {}

  // `why`: a clause for the log.
  void fail(Connection& connection, const char* why) noexcept {
    batch_.deliver();
    {
      const std::lock_guard guard(connection.lock);
      if (connection.is(ConnectionState::failed)) return;
      connection.state.store(ConnectionState::failed, std::memory_order_release);
      sent_.release_chain(connection.send.take_all());
      early_.release_chain(connection.receive.take_all());
      connection.opening.reset();
    }
    reassembly_.drop(connection.half);
    context_.counters.connections_failed.add();
    log_message(LogLevel::info, "%s: the connection with nid 0x%08x pid %u ends: %s",
                context_.link.name(), connection.peer.nid, connection.peer.pid, why);
    batch_.report_failure(connection);
  }

 private:
  const ReliableContext context_;
  FramePool& sent_;
  FramePool& early_;
  Reassembly& reassembly_;
  MessageBatch& batch_;
};

}  // namespace lintel

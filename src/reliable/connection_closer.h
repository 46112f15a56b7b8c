// The end of a connection: releases what it holds and reports it to the sink. Connection path; the
// poller, no lock held.
#pragma once

#include "reliable/connection_table.h"
#include "reliable/message_batch.h"
#include "reliable/transmitter.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

class ConnectionCloser {
 public:
  ConnectionCloser(const ReliableContext& context, Transmitter& transmitter,
                   MessageBatch& batch) noexcept
      : context_(context), transmitter_(transmitter), batch_(batch) {}

  // `why`: a clause, constant text.
  void fail(Connection& connection, const char* why) noexcept LINTEL_REQUIRES(polling) {
    end(connection, {Link::Failure::Kind::gone, why}, nullptr);
  }
  // Ends a connection whose peer answered, but does not connect.
  void refused(Connection& connection, const char* why) noexcept LINTEL_REQUIRES(polling) {
    end(connection, {Link::Failure::Kind::refused, why}, nullptr);
  }
  // Closes one of a few connections: one that was silent for long, with nothing in flight, of that
  // node or of any. Its peer is notified, and may connect again. False: there was none.
  [[nodiscard]] bool give_up_silent(uint32_t nid, bool of_any_node, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(polling) {
    const auto is_silent = [&](const Connection& connection) {
      connection.lock.assert_held();
      return (of_any_node || connection.peer.nid == nid) && connection.life.is_established() &&
             connection.send.window.empty() && connection.receive.half.buffer == nullptr &&
             !connection.receive.window.has_kept() &&
             connection.silence.lasts_ns(now_ns) > context_.settings.idle_timeout_ns();
    };
    Connection* const connection = context_.table.search(is_silent);
    return connection != nullptr && end(*connection,
                                        {Link::Failure::Kind::gone,
                                         "it was silent for long, and another one needs its place"},
                                        &now_ns);
  }

 private:
  // `unused_at_ns`: only if nothing is to be sent; sends a goodbye frame then.
  bool end(Connection& connection, Link::Failure failure, const uint64_t* unused_at_ns) noexcept
      LINTEL_REQUIRES(polling) {
    batch_.deliver();
    {
      const LockGuard guard(connection.lock);
      if (connection.life.is(ConnectionState::failed)) return false;
      if (unused_at_ns != nullptr) {
        if (!connection.send.window.empty()) return false;
        transmitter_.say_goodbye(connection, *unused_at_ns);
      }
      if (failure.kind == Link::Failure::Kind::gone && !connection.life.is_established())
        failure.kind = Link::Failure::Kind::unanswered;
      connection.failure = failure;
      connection.life.fail();
      context_.sent.release_chain(connection.send.window.take_all());
      context_.received.release_chain(connection.receive.window.take_all());
      connection.receive.parts.drop(context_.received);
      connection.protection.close();
    }
    context_.reassembly.drop(connection.receive.half);
    context_.counters.connections_failed.increment();
    log_message(LogLevel::info, "%s: the connection with %s ends: %s", context_.link.name(),
                ProcessText(connection.peer.nid, connection.peer.pid).c_str(), failure.reason);
    batch_.report_failure(connection);
    context_.table.note_end(connection);
    return true;
  }

  const ReliableContext context_;
  Transmitter& transmitter_;
  MessageBatch& batch_;
};

}  // namespace lintel

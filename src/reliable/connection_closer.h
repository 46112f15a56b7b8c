// The end of a connection: releases what it holds and reports it to the sink. Connection path; the
// poller, no lock held.
#pragma once

#include <utility>

#include "reliable/connection_table.h"
#include "reliable/message_batch.h"
#include "reliable/transmitter.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

class ConnectionCloser {
 public:
  ConnectionCloser(const ReliableContext& context, ConnectionTable& table, Transmitter& transmitter,
                   FramePool& sent, FramePool& early, Reassembly& reassembly,
                   MessageBatch& batch) noexcept
      : context_(context),
        table_(table),
        transmitter_(transmitter),
        sent_(sent),
        early_(early),
        reassembly_(reassembly),
        batch_(batch) {}

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
      return (of_any_node || connection.peer.nid == nid) && connection.is_established() &&
             connection.send.empty() && connection.half.buffer == nullptr &&
             !connection.receive.has_early() &&
             connection.silence.lasts_ns(now_ns) > context_.settings.kept_silent_ns();
    };
    Connection* const connection = table_.search(is_silent);
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
      if (connection.is(ConnectionState::failed)) return false;
      if (unused_at_ns != nullptr) {
        if (!connection.send.empty()) return false;
        transmitter_.say_goodbye(connection, *unused_at_ns);
      }
      if (failure.kind == Link::Failure::Kind::gone && !connection.is_established())
        failure.kind = Link::Failure::Kind::unanswered;
      connection.failure = failure;
      connection.move_to(ConnectionState::failed);
      sent_.release_chain(connection.send.take_all());
      early_.release_chain(connection.receive.take_all());
      early_.release_chain(std::exchange(connection.parts, nullptr));
      connection.opening.reset();
      connection.secure.reset();
    }
    reassembly_.drop(connection.half);
    context_.counters.connections_failed.increment();
    log_message(LogLevel::info, "%s: the connection with %s ends: %s", context_.link.name(),
                ProcessText(connection.peer.nid, connection.peer.pid).c_str(), failure.reason);
    batch_.report_failure(connection);
    table_.note_end(connection);
    return true;
  }

  const ReliableContext context_;
  ConnectionTable& table_;
  Transmitter& transmitter_;
  FramePool& sent_;
  FramePool& early_;
  Reassembly& reassembly_;
  MessageBatch& batch_;
};

}  // namespace lintel

// Being called: answering hellos without keeping anything, checking who wants to connect, and frames
// that belong to no connection. Connection path, within poll().
#include <cstring>
#include <new>

#include "reliable/reliable_transport.h"
#include "util/log.h"

namespace lintel {

void ReliableTransport::handle_hello(const InboundFrame& frame, const HandshakeBody& body,
                                     uint64_t now) noexcept {
  HandshakeBody answer = own_body({body.from_nid, body.from_pid});
  answer.cookie = cookies_.make(*frame.from, body, now);
  send_handshake(FrameType::challenge, *frame.from, body.number, answer);
}

RefuseCause ReliableTransport::judge(const HandshakeBody& body) const noexcept {
  if (body.message_version != message_version) return RefuseCause::version;
  if (body.authenticates != (proof_.required() ? 1 : 0)) return RefuseCause::job;
  if (!proof_.check_connect(body)) return RefuseCause::job;
  return body.uid == settings_.uid ? RefuseCause::none : RefuseCause::user;
}

void ReliableTransport::refuse(const InboundFrame& frame, const HandshakeBody& body,
                               RefuseCause cause) noexcept {
  counts_.handshakes_refused.add();
  static std::atomic<bool> said[5];
  static constexpr const char* causes[] = {
      "", "another version of the protocol",
      "another job key (PTL_JOB_KEY), or only one side has one", "another user",
      "too many connections"};
  const auto index = static_cast<unsigned>(cause);
  log_once(said[index], LogLevel::warn, "%s: refused nid 0x%08x pid %u, user %u: %s", link_->name(),
           body.from_nid, body.from_pid, body.uid, causes[index]);
  HandshakeBody answer = own_body({body.from_nid, body.from_pid});
  answer.cause = cause;
  send_handshake(FrameType::refuse, *frame.from, body.number, answer);
}

void ReliableTransport::handle_connect(MessageSink& sink, const InboundFrame& frame,
                                       const HandshakeBody& body, uint64_t now) noexcept {
  const ProcessId peer{body.from_nid, body.from_pid};
  if (!cookies_.is_good(body.cookie, *frame.from, body, now) || peer == own_id_ ||
      body.number == 0 || body.mtu < PacketLink::least_mtu) {
    counts_.strangers.add();
    return;
  }
  // From here on the sender is known to get what is sent to its address.
  if (const RefuseCause cause = judge(body); cause != RefuseCause::none) {
    refuse(frame, body, cause);
    return;
  }
  Route route;
  if (!link_->adopt(peer, *frame.from, route)) {
    counts_.strangers.add();
    static std::atomic<bool> said{false};
    log_once(said, LogLevel::warn,
             "%s: somebody claims to be nid 0x%08x pid %u, but frames of that process would come "
             "from elsewhere; not connected",
             link_->name(), peer.nid, peer.pid);
    return;
  }
  Connection* const connection = place_for(sink, peer, body);
  if (connection == nullptr) {
    refuse(frame, body, RefuseCause::no_room);
    return;
  }
  const std::lock_guard guard(connection->lock);
  switch (connection->state.load(std::memory_order_relaxed)) {
    case ConnectionState::established:
      break;  // our accept was lost: once more
    case ConnectionState::opening:
      // Both called at once: the call of the process with the higher address goes through.
      if (key_of(own_id_) > key_of(peer)) return;
      [[fallthrough]];
    case ConnectionState::idle:
    case ConnectionState::failed:
      connection->route = route;
      establish(*connection, body, now);
      break;
  }
  send_accept(*connection, body);
}

// The connection that is to be established, or is already with this very caller. One that belonged to
// an earlier process, or that the caller gave up, fails first.
Connection* ReliableTransport::place_for(MessageSink& sink, ProcessId peer,
                                         const HandshakeBody& body) noexcept {
  Connection* connection = nullptr;
  try {
    connection = find_or_make(peer);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  if (connection == nullptr) return nullptr;
  if (connection->state.load(std::memory_order_acquire) == ConnectionState::established &&
      connection->peer_number != body.number)
    fail(sink, *connection, "it has started anew");
  const std::lock_guard guard(connection->lock);
  if (connection->state.load(std::memory_order_relaxed) == ConnectionState::failed)
    make_idle(*connection);
  return connection;
}

void ReliableTransport::send_accept(const Connection& connection,
                                    const HandshakeBody& body) noexcept {
  HandshakeBody answer = own_body(connection.peer);
  answer.number = connection.number;
  proof_.prove_accept(answer, body.nonce, body.number);
  send_handshake(FrameType::accept, connection.route.address, body.number, answer);
}

// Tells a peer of an earlier process with this address that it is gone. Not longer than what it
// answers.
void ReliableTransport::send_reset(const InboundFrame& frame, const FrameHeader& header) noexcept {
  ResetBody body{header.connection, own_id_.nid, own_id_.pid};
  if (frame.length < sizeof header + sizeof body) return;
  FrameHeader answer{};
  answer.version = frame_version;
  answer.type = FrameType::reset;
  answer.check = finish_check(body_check(handshake_seed, &body, sizeof body), answer);
  const Piece pieces[2] = {{reinterpret_cast<std::byte*>(&answer), sizeof answer},
                           {reinterpret_cast<std::byte*>(&body), sizeof body}};
  const OutboundFrame outbound{frame.from, pieces, 2};
  static_cast<void>(link_->send(&outbound, 1));
}

}  // namespace lintel

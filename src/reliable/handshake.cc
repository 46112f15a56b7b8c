// Opening a connection: hello, challenge, connect, accept. Connection path.
//
// The called side keeps nothing before `connect` brings its cookie back, so frames with invented
// sources cost it a hash. All four frames have the same length: none makes an answer longer than the
// question.
#include <algorithm>
#include <cstring>

#include "reliable/reliable_transport.h"
#include "util/log.h"

namespace lintel {

namespace {

constexpr uint64_t first_attempt_gap_ns = 2'000'000;
constexpr unsigned most_doublings = 6;

const char* text_of(RefuseCause cause) noexcept {
  switch (cause) {
    case RefuseCause::version:
      return "it speaks another version of the protocol; use the same library everywhere";
    case RefuseCause::job:
      return "its job key (PTL_JOB_KEY) is another one, or only one side has one";
    case RefuseCause::user:
      return "it belongs to another user";
    case RefuseCause::no_room:
      return "it has too many connections";
    case RefuseCause::none:
      break;
  }
  return "it refused the connection";
}

}  // namespace

HandshakeBody ReliableTransport::own_body(ProcessId to) const noexcept {
  HandshakeBody body{};
  body.incarnation = incarnation_;
  body.from_nid = own_id_.nid;
  body.from_pid = own_id_.pid;
  body.to_nid = to.nid;
  body.to_pid = to.pid;
  body.uid = settings_.uid;
  body.mtu = link_->mtu();
  body.window_bytes = link_->receive_capacity_bytes();
  body.first_sequence = settings_.first_sequence;
  body.message_version = message_version;
  body.authenticates = proof_.required() ? 1 : 0;
  return body;
}

void ReliableTransport::send_handshake(FrameType type, const LinkAddress& to,
                                       uint64_t receiver_number, HandshakeBody body) noexcept {
  FrameHeader header{};
  header.version = frame_version;
  header.type = type;
  header.connection = receiver_number;
  header.check = finish_check(body_check(handshake_seed, &body, sizeof body), header);
  const Piece pieces[2] = {{reinterpret_cast<std::byte*>(&header), sizeof header},
                           {reinterpret_cast<std::byte*>(&body), sizeof body}};
  const OutboundFrame frame{&to, pieces, 2};
  // One that is lost here is repeated like one that is lost on the way.
  static_cast<void>(link_->send(&frame, 1));
}

void ReliableTransport::start_opening(Connection& connection, uint64_t now) noexcept {
  connection.opening.reset(new (std::nothrow) Opening);
  if (connection.opening == nullptr) return;  // the caller tries again
  fill_random(connection.opening->nonce, nonce_bytes);
  connection.opening->started_ns = now;
  connection.state.store(ConnectionState::opening, std::memory_order_release);
  attempt_opening(connection, now);
}

void ReliableTransport::attempt_opening(Connection& connection, uint64_t now) noexcept {
  Opening& opening = *connection.opening;
  const unsigned doublings = std::min(opening.attempts++, most_doublings);
  opening.next_attempt_ns = now + (first_attempt_gap_ns << doublings);
  list(connection, opening.next_attempt_ns);
  if (!opening.routed) {
    switch (link_->resolve(connection.peer, connection.route, nullptr)) {
      case ResolveStatus::resolved:
        opening.routed = true;
        break;
      case ResolveStatus::pending:
        return;
      case ResolveStatus::unreachable:
        opening.unreachable = true;
        return;
    }
  }
  HandshakeBody body = own_body(connection.peer);
  body.number = connection.number;
  std::memcpy(body.nonce, opening.nonce, nonce_bytes);
  if (opening.challenged) {
    body.cookie = opening.cookie;
    proof_.prove_connect(body);
  }
  send_handshake(opening.challenged ? FrameType::connect : FrameType::hello,
                 connection.route.address, 0, body);
}

void ReliableTransport::handle_handshake(MessageSink& sink, const InboundFrame& frame,
                                         const FrameHeader& header, uint64_t now) noexcept {
  if (frame.length != sizeof(FrameHeader) + sizeof(HandshakeBody)) {
    counts_.malformed.add();
    return;
  }
  if (!check_frame(handshake_seed, frame.data, frame.length)) {
    counts_.damaged.add();
    return;
  }
  HandshakeBody body;
  std::memcpy(&body, frame.data + sizeof header, sizeof body);
  if (body.to_nid != own_id_.nid || body.to_pid != own_id_.pid) {
    counts_.strangers.add();
    return;
  }
  switch (header.type) {
    case FrameType::hello:
      handle_hello(frame, body, now);
      return;
    case FrameType::connect:
      handle_connect(sink, frame, body, now);
      return;
    default:
      break;
  }
  Connection* const connection = opening_connection(frame, header, body);
  if (connection == nullptr) {
    counts_.strangers.add();
  } else if (header.type == FrameType::challenge) {
    handle_challenge(*connection, body, now);
  } else if (header.type == FrameType::accept) {
    handle_accept(sink, *connection, body, now);
  } else {
    handle_refuse(sink, *connection, body);
  }
}

// The connection that a frame answers, if it is one that waits for an answer from there.
Connection* ReliableTransport::opening_connection(const InboundFrame& frame,
                                                  const FrameHeader& header,
                                                  const HandshakeBody& body) noexcept {
  Connection* const connection = by_number(header.connection);
  if (connection == nullptr) return nullptr;
  const std::lock_guard guard(connection->lock);
  const bool fits = connection->state.load(std::memory_order_relaxed) == ConnectionState::opening &&
                    connection->number == header.connection && connection->opening->routed &&
                    connection->route.address == *frame.from &&
                    connection->peer == ProcessId{body.from_nid, body.from_pid};
  return fits ? connection : nullptr;
}

void ReliableTransport::handle_challenge(Connection& connection, const HandshakeBody& body,
                                         uint64_t now) noexcept {
  const std::lock_guard guard(connection.lock);
  Opening& opening = *connection.opening;
  if (opening.challenged && opening.cookie == body.cookie) return;  // a duplicate
  opening.challenged = true;
  opening.cookie = body.cookie;
  opening.attempts = 0;
  attempt_opening(connection, now);
}

void ReliableTransport::handle_accept(MessageSink& sink, Connection& connection,
                                      const HandshakeBody& body, uint64_t now) noexcept {
  bool refused = false;
  {
    const std::lock_guard guard(connection.lock);
    const Opening& opening = *connection.opening;
    if (!opening.challenged) return;
    if (body.number == 0 || body.mtu < PacketLink::least_mtu ||
        body.message_version != message_version) {
      counts_.malformed.add();
      return;
    }
    const bool proven = body.authenticates == (proof_.required() ? 1 : 0) &&
                        proof_.check_accept(body, opening.nonce, connection.number);
    if (proven && body.uid == settings_.uid) {
      establish(connection, body, now);
      return;
    }
    connection.refused = proven ? RefuseCause::user : RefuseCause::job;
    refused = true;
  }
  if (refused) {
    counts_.handshakes_refused.add();
    fail(sink, connection, text_of(connection.refused));
  }
}

void ReliableTransport::handle_refuse(MessageSink& sink, Connection& connection,
                                      const HandshakeBody& body) noexcept {
  static std::atomic<bool> said{false};
  log_once(said, LogLevel::warn, "%s: nid 0x%08x pid %u cannot be reached: %s", link_->name(),
           connection.peer.nid, connection.peer.pid, text_of(body.cause));
  fail(sink, connection, text_of(body.cause));
}

// Lock held. Both sides have proven what they had to.
void ReliableTransport::establish(Connection& connection, const HandshakeBody& body,
                                  uint64_t now) noexcept {
  connection.opening.reset();
  connection.peer_number = body.number;
  connection.peer_incarnation = body.incarnation;
  connection.send_seed = connection_seed(body.number, connection.number);
  connection.receive_seed = connection_seed(connection.number, body.number);
  connection.uid = body.uid;
  connection.frame_bytes = std::min({connection.route.mtu, body.mtu, link_->mtu()});
  connection.max_data_bytes = (connection.frame_bytes - message_frame_overhead) & ~7u;
  connection.send.open(settings_.first_sequence, body.window_bytes, connection.frame_bytes,
                       settings_.shortest_timeout_ns);
  connection.receive.open(body.first_sequence);
  connection.unacknowledged_bytes = 0;
  connection.ack_now = false;
  connection.put_off = false;
  connection.ack_deadline_ns = UINT64_MAX;
  connection.retry_ns = UINT64_MAX;
  connection.last_heard_ns = now;
  connection.waiting_since_ns = 0;
  connection.unreachable_hints = 0;
  connection.state.store(ConnectionState::established, std::memory_order_release);
  counts_.connections_opened.add();
  log_message(LogLevel::debug, "%s: connected with nid 0x%08x pid %u, frames of %u bytes",
              link_->name(), connection.peer.nid, connection.peer.pid, connection.frame_bytes);
}

// The peer does not know the connection any more: another process has its address now.
void ReliableTransport::handle_reset(MessageSink& sink, const InboundFrame& frame) noexcept {
  ResetBody body;
  if (frame.length != sizeof(FrameHeader) + sizeof body ||
      !check_frame(handshake_seed, frame.data, frame.length)) {
    counts_.malformed.add();
    return;
  }
  std::memcpy(&body, frame.data + sizeof(FrameHeader), sizeof body);
  Connection* const connection = find({body.nid, body.pid});
  if (connection == nullptr ||
      connection->state.load(std::memory_order_acquire) != ConnectionState::established ||
      connection->peer_number != body.number || !(connection->route.address == *frame.from)) {
    counts_.strangers.add();
    return;
  }
  counts_.resets_received.add();
  fail(sink, *connection, "another process has taken its place");
}

}  // namespace lintel

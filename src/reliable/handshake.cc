#include "reliable/handshake.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "transport/process_key.h"
#include "util/awaited_process.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

namespace {

// After a refusal that proves nothing, an acceptance is awaited for this share of the time after
// which a peer counts as dead.
constexpr uint64_t share_for_refusals = 16;

// Returns a clause about the peer: why it is refused, or why it refuses.
const char* text_of(RefuseCause cause) noexcept {
  static constexpr const char* texts[] = {
      "it refused the connection",
      "it speaks another version of the protocol; use the same library everywhere",
      "its job key (PTL_JOB_KEY) is another one, or only one side has one",
      "it belongs to another user", "there are too many connections",
      // The parentheses prevent a warning of Clang about a missing comma between two literals.
      ("there is no job key, and it is no process of this user on this node, or one of both cannot "
       "use /dev/shm: set PTL_JOB_KEY to the same secret in all processes, or PTL_UDP_OPEN=1 to "
       "admit everybody"),
      ("PTL_NETWORK_SECURITY is not the same in all processes, or somebody on the way changes it "
       "(a downgrade)"),
      ("it is on another node, but both nodes have the same nid: set PTL_NID on each (ptl_info shows "
       "it)")};
  static_assert(std::size(texts) == refuse_causes);
  const auto index = static_cast<size_t>(cause);
  return texts[index < std::size(texts) ? index : 0];
}

// Records a refusal, so that the run-time library can distinguish it from a process that has not
// started yet.
void note_lasting(ProcessId peer, RefuseCause cause) noexcept {
  if (cause != RefuseCause::none && cause != RefuseCause::no_room)
    note_refusal(peer.nid, peer.pid, text_of(cause));
}

// Sends a frame. A frame that the link does not take is repeated like one that is lost on the way.
void send_frame(PacketLink& link, FrameHeader header, const void* body, size_t bytes,
                const LinkAddress& to) noexcept {
  header.version = frame_version;
  header.check = finish_check(body_check(handshake_seed, body, bytes), header);
  const Piece pieces[2] = {{reinterpret_cast<std::byte*>(&header), sizeof header},
                           {static_cast<std::byte*>(const_cast<void*>(body)), bytes}};
  const OutboundFrame frame{&to, pieces, bytes != 0 ? 2u : 1u};
  static_cast<void>(link.send(&frame, 1));
}

// Counts what cannot be read.
template <typename Body>
bool read_frame(const InboundFrame& frame, Body& body, ReliableCounters& counters) noexcept {
  const bool fits = frame.length == sizeof(FrameHeader) + sizeof body;
  if (!fits || !check_frame(handshake_seed, frame.data, frame.length)) {
    (fits ? counters.damaged : counters.malformed).increment();
    return false;
  }
  std::memcpy(&body, frame.data + sizeof(FrameHeader), sizeof body);
  return true;
}

// Whether the statements of the sender about itself are possible. A slot takes the longest frame.
bool is_plausible(const HandshakeBody& body) noexcept {
  return body.number != 0 && body.incarnation != 0 && body.mtu >= PacketLink::least_mtu &&
         body.rail_count <= most_rails &&
         (body.slot_bytes == 0 ||
          (body.slot_bytes >= body.mtu && body.slot_bytes <= PacketLink::largest_mtu));
}

}  // namespace

bool Handshake::may_answer(const InboundFrame& frame, uint64_t now_ns) noexcept {
  const bool admitted = limit_.admit(*frame.from, now_ns);
  if (!admitted) context_.counters.unanswered.increment();
  return admitted;
}

// Processes with the same nid are on one node.
bool Handshake::needs_no_check(ProcessId peer) const noexcept {
  return context_.link.properties().keeps_frames_of_node && peer.nid == context_.link.id().nid &&
         !seals();
}

// Returns the length of the longest frame from the peer: the path may be as narrow as the route to
// the peer.
uint32_t Handshake::taken_bytes(const Connection& connection) const noexcept {
  return std::min(connection.life.route().mtu, context_.link.mtu());
}

HandshakeBody Handshake::own_body(ProcessId to) const noexcept {
  HandshakeBody body{};
  body.incarnation = incarnation_;
  body.from_nid = context_.link.id().nid;
  body.from_pid = context_.link.id().pid;
  body.to_nid = to.nid;
  body.to_pid = to.pid;
  body.uid = context_.settings.uid;
  body.mtu = context_.link.mtu();
  body.window_bytes = context_.link.receive_capacity_bytes();
  body.slot_bytes = context_.link.properties().receive_slot_bytes;
  body.node = context_.settings.node;
  const LinkProperties& link = context_.link.properties();
  body.rail_count = link.rail_count;
  std::copy(link.rails.begin(), link.rails.end(), body.rails);
  body.first_sequence = context_.settings.first_sequence;
  body.message_version = message_version;
  body.admission = proof_.admission();
  body.security = context_.settings.security;
  body.leaves_unchecked = needs_no_check(to) ? 1 : 0;
  return body;
}

void Handshake::send(FrameType type, const LinkAddress& to, uint64_t receiver_number,
                     const HandshakeBody& body) noexcept {
  FrameHeader header{};
  header.type = type;
  header.connection = receiver_number;
  send_frame(context_.link, header, &body, sizeof body,
             context_.link.with_rail({body.to_nid, body.to_pid}, to));
}

void Handshake::start(Connection& connection, uint64_t now_ns) noexcept {
  std::unique_ptr<Opening> opening(new (std::nothrow) Opening);
  // The caller tries again.
  if (opening == nullptr || !opening->start(seals() ? proof_.crypto() : nullptr, now_ns)) return;
  connection.life.open(std::move(opening));
  attempt(connection, now_ns);
}

void Handshake::attempt(Connection& connection, uint64_t now_ns) noexcept {
  Opening& opening = *connection.life.opening();
  context_.timers.set(connection, opening.count_attempt(now_ns));
  if (!opening.is_routed()) {
    Route route = connection.life.route();
    opening.note_route(context_.link.resolve(connection.peer, route, nullptr));
    connection.life.set_route(route);
    if (!opening.is_routed()) return;
  }
  HandshakeBody body = own_body(connection.peer);
  body.number = connection.life.number();
  body.mtu = taken_bytes(connection);
  opening.write_to(body);
  if (opening.attempts() > 1 && opening.seeks_path()) call_elsewhere(connection, body);
  if (opening.is_challenged()) proof_.prove(ProofRole::connect, body, body.nonce, body.number);
  send(opening.is_challenged() ? FrameType::connect : FrameType::hello,
       connection.life.route().address, 0, body);
}

// Its path, or that of its challenge, may be cut. The others are tried in turn.
void Handshake::call_elsewhere(const Connection& connection, const HandshakeBody& body) noexcept {
  LinkAddress ways[most_ways];
  const unsigned count =
      context_.link.ways_to(connection.peer, connection.life.route().address, ways);
  if (count == 0) return;
  FrameHeader header{};
  header.type = FrameType::hello;
  const unsigned attempt = connection.life.opening()->attempts();
  send_frame(context_.link, header, &body, sizeof body, ways[(attempt - 1) % count]);
}

uint64_t Handshake::go_on(Connection& connection, bool unreachable, uint64_t now_ns,
                          Link::Failure& failure) noexcept {
  const Opening& opening = *connection.life.opening();
  const uint64_t timeout_ns = context_.settings.peer_timeout_ns;
  if (opening.refused_for_ns(now_ns) > timeout_ns / share_for_refusals) {
    note_lasting(connection.peer, opening.refusal());
    failure = {Link::Failure::Kind::refused, text_of(opening.refusal())};
  } else if (opening.is_unreachable() || unreachable) {
    failure = {Link::Failure::Kind::gone, "no such process there"};
  } else if (opening.lasts_ns(now_ns) > timeout_ns) {
    failure = {Link::Failure::Kind::gone, "it does not answer"};
  } else if (now_ns >= opening.next_attempt_ns()) {
    attempt(connection, now_ns);
  }
  return opening.next_attempt_ns();
}

void Handshake::take(const InboundFrame& frame, const FrameHeader& header,
                     uint64_t now_ns) noexcept {
  HandshakeBody body;
  if (!read_frame(frame, body, context_.counters)) return;
  if (!(ProcessId{body.to_nid, body.to_pid} == context_.link.id())) {
    context_.counters.strangers.increment();
    return;
  }
  if (header.type == FrameType::hello) return take_hello(frame, body, now_ns);
  if (header.type == FrameType::connect) return take_connect(frame, body, now_ns);
  Connection* const connection = awaiting(frame, header);
  if (connection == nullptr || !(connection->peer == ProcessId{body.from_nid, body.from_pid})) {
    context_.counters.strangers.increment();
  } else if (header.type == FrameType::challenge) {
    take_challenge(*connection, body, now_ns);
  } else if (header.type == FrameType::accept) {
    const RefuseCause cause = take_accept(*connection, body, now_ns);
    if (cause == RefuseCause::none) return;
    take_refusal(*connection, cause, now_ns);
  } else {
    take_refusal(*connection, body.cause, now_ns);
  }
}

// Takes a frame of another version of the protocol. Only the fields that all versions have in
// common are read: see frame.h.
void Handshake::take_of_other_version(const InboundFrame& frame, const FrameHeader& header,
                                      uint64_t now_ns) noexcept {
  context_.counters.malformed.increment();
  const bool opens = header.type == FrameType::hello || header.type == FrameType::connect;
  uint64_t number = 0;
  if (!check_frame(handshake_seed, frame.data, frame.length) ||
      (opens ? frame.length < sizeof header + sizeof number : header.type != FrameType::refuse))
    return;
  Connection* const connection = opens ? nullptr : awaiting(frame, header);
  if (!opens && connection == nullptr) return;
  const bool due = said_versions_.is_due(uint64_t{1} << 8 | header.version, now_ns);
  log_message(due ? LogLevel::warn : LogLevel::debug,
              "%s: %s speaks version %u of the protocol, this process version %u; use the same "
              "library everywhere",
              context_.link.name(),
              opens ? "a process that connects"
                    : ProcessText(connection->peer.nid, connection->peer.pid).c_str(),
              header.version, frame_version);
  if (!opens) return take_refusal(*connection, RefuseCause::version, now_ns);
  if (!may_answer(frame, now_ns)) return;
  std::memcpy(&number, frame.data + sizeof header, sizeof number);
  FrameHeader answer{};
  answer.type = FrameType::refuse;
  answer.connection = number;
  send_frame(context_.link, answer, nullptr, 0, *frame.from);
}

// Takes a refusal. Where frames are sealed, a refusal without proof does not end the attempt at
// once. So an attacker who can send frames, but cannot stop those of others, cannot prevent a
// connection.
void Handshake::take_refusal(Connection& connection, RefuseCause cause, uint64_t now_ns) noexcept {
  if (!seals()) {
    note_lasting(connection.peer, cause);
    return closer_.refused(connection, text_of(cause));
  }
  const LockGuard guard(connection.lock);
  connection.life.opening()->note_refusal(cause == RefuseCause::none ? RefuseCause::job : cause,
                                          now_ns);
}

// The connection that a frame answers, if it is one that waits for an answer from there. The route
// of one that seeks a path leads there from now on.
Connection* Handshake::awaiting(const InboundFrame& frame,
                                const FrameHeader& header) const noexcept {
  Connection* const connection = context_.table.by_number(header.connection);
  if (connection == nullptr) return nullptr;
  const LockGuard guard(connection->lock);
  ConnectionLife& life = connection->life;
  if (!life.is(ConnectionState::opening) || life.number() != header.connection ||
      !life.opening()->is_routed())
    return nullptr;
  if (life.route().address == *frame.from) return connection;
  Route route;
  if (context_.link.properties().rail_count == 0 || !life.opening()->seeks_path() ||
      !context_.link.adopt(connection->peer, *frame.from, route))
    return nullptr;
  life.set_route(route);
  return connection;
}

void Handshake::take_challenge(Connection& connection, const HandshakeBody& body,
                               uint64_t now_ns) noexcept {
  const LockGuard guard(connection.lock);
  if (connection.life.opening()->take_challenge(body.cookie)) attempt(connection, now_ns);
}

// Returns why the connection has to fail.
RefuseCause Handshake::take_accept(Connection& connection, const HandshakeBody& body,
                                   uint64_t now_ns) noexcept {
  // The proofs take long, so they are checked before the lock is taken. Only this thread changes a
  // connection that is opening.
  Opening& opening = *connection.life.opening();
  if (!opening.is_challenged()) return RefuseCause::none;
  if (!is_plausible(body) || body.message_version != message_version) {
    context_.counters.malformed.increment();
    return RefuseCause::none;
  }
  const RefuseCause cause =
      judge(body, proof_.check(ProofRole::accept, body, opening.nonce(), connection.life.number()));
  if (cause != RefuseCause::none) {
    if (opening.refusal() == RefuseCause::none) context_.counters.handshakes_refused.increment();
    return cause;
  }
  std::unique_ptr<SecureChannel> secure;
  if (seals()) {
    HandshakeBody own = own_body(connection.peer);
    own.number = connection.life.number();
    opening.write_to(own);
    secure = proof_.make_channel(opening.keys(), own, body, true);
    if (secure == nullptr) return RefuseCause::none;  // no memory: the peer answers again
  }
  const LockGuard guard(connection.lock);
  establish(connection, body, std::move(secure), now_ns);
  return RefuseCause::none;
}

void Handshake::take_hello(const InboundFrame& frame, const HandshakeBody& body,
                           uint64_t now_ns) noexcept {
  if (!may_answer(frame, now_ns)) return;
  HandshakeBody answer = own_body({body.from_nid, body.from_pid});
  answer.cookie =
      cookies_.make(*frame.from, body, last_number_of({body.from_nid, body.from_pid}), now_ns);
  send(FrameType::challenge, *frame.from, body.number, answer);
}

RefuseCause Handshake::judge(const HandshakeBody& body, bool proven) const noexcept {
  if (body.message_version != message_version) return RefuseCause::version;
  const bool has_key = proof_.admission() == Admission::job_key;
  const bool is_of_user = body.uid == context_.settings.uid;
  if (has_key || body.admission == Admission::job_key) {
    // If an attacker changes `admission` on the way, the proof is wrong, too.
    if (body.admission == proof_.admission() && body.security != context_.settings.security)
      return RefuseCause::security;
    if (body.admission != proof_.admission() || !proven) return RefuseCause::job;
  } else if (is_of_user && (body.admission != proof_.admission() || !proven)) {
    // The proof of a node's secret depends on `security`, which may be the cause of the failure.
    return body.security == context_.settings.security ? RefuseCause::closed
                                                       : RefuseCause::security;
  }
  if (!is_of_user) return RefuseCause::user;
  if (body.security != context_.settings.security) return RefuseCause::security;
  const uint64_t node = context_.settings.node;
  const bool is_other_node = node != 0 && body.node != 0 && body.node != node;
  return is_other_node && body.from_nid == context_.link.id().nid ? RefuseCause::nid
                                                                  : RefuseCause::none;
}

void Handshake::refuse(const InboundFrame& frame, const HandshakeBody& body, RefuseCause cause,
                       uint64_t now_ns) noexcept {
  context_.counters.handshakes_refused.increment();
  const LogLevel level = cause == RefuseCause::nid ? LogLevel::error : LogLevel::warn;
  const bool due =
      said_refusals_.is_due(static_cast<uint64_t>(cause) << 32 | body.from_nid, now_ns);
  log_message(due ? level : LogLevel::debug, "%s: refused %s, user %u: %s", context_.link.name(),
              ProcessText(body.from_nid, body.from_pid).c_str(), body.uid, text_of(cause));
  note_lasting({body.from_nid, body.from_pid}, cause);
  if (!may_answer(frame, now_ns)) return;
  HandshakeBody answer = own_body({body.from_nid, body.from_pid});
  answer.cause = cause;
  send(FrameType::refuse, *frame.from, body.number, answer);
}

void Handshake::take_connect(const InboundFrame& frame, const HandshakeBody& body,
                             uint64_t now_ns) noexcept {
  const ProcessId peer{body.from_nid, body.from_pid};
  Connection* const known = context_.table.find(peer);
  const bool again =
      known != nullptr && known->life.is_established() && known->life.peer_number() == body.number;
  if (peer == context_.link.id() || !is_plausible(body) ||
      !cookies_.is_good(body.cookie, *frame.from, body, last_number_of(peer), now_ns)) {
    if (again && known->life.cookie() == body.cookie)
      return send_accept(*known, *frame.from, body);  // ours was lost
    context_.counters.strangers.increment();
    // The cookie may be too old, or of an earlier connection: the caller continues with a new one.
    return take_hello(frame, body, now_ns);
  }
  // The cookie has shown that the sender receives frames at its address.
  const RefuseCause cause =
      judge(body, proof_.check(ProofRole::connect, body, body.nonce, body.number));
  if (cause != RefuseCause::none) return refuse(frame, body, cause, now_ns);
  Route route;
  if (!context_.link.adopt(peer, *frame.from, route)) {
    context_.counters.strangers.increment();
    static std::atomic<bool> said{false};
    log_once(said, LogLevel::warn,
             "%s: a process claims to be %s, but frames of that process would come "
             "from elsewhere; not connected",
             context_.link.name(), ProcessText(peer.nid, peer.pid).c_str());
    return;
  }
  if (again) return send_accept(*known, *frame.from, body);
  Connection* const connection = place_for(peer, now_ns);
  if (connection == nullptr) return refuse(frame, body, RefuseCause::no_room, now_ns);
  // No lock is taken yet, as in take_accept(). A thread that sends may start to open the
  // connection, but its number stays.
  std::unique_ptr<SecureChannel> secure;
  if (seals()) {
    SessionKeys keys;
    HandshakeBody own = own_body(peer);
    own.number = connection->life.number();
    if (!keys.make_share(*proof_.crypto())) return;
    std::memcpy(own.share, keys.share(), share_bytes);
    secure = proof_.make_channel(keys, body, own, false);
    if (secure == nullptr) return;  // the caller tries again
  }
  {
    const LockGuard guard(connection->lock);
    // Both called at once: the call of the process with the higher address goes through.
    if (connection->life.is(ConnectionState::opening) && key_of(context_.link.id()) > key_of(peer))
      return;
    connection->life.note_call(route, body.cookie);
    establish(*connection, body, std::move(secure), now_ns);
  }
  send_accept(*connection, *frame.from, body);
}

// The caller's number of its last connection with us; 0: there was none.
uint64_t Handshake::last_number_of(ProcessId peer) const {
  Connection* const known = context_.table.find(peer);
  if (known == nullptr) return 0;
  const LockGuard guard(known->lock);
  return known->life.peer_number();
}

// The connection that is to be established. If it belonged to an earlier process, or the caller
// gave it up, it fails first.
Connection* Handshake::place_for(ProcessId peer, uint64_t now_ns) noexcept {
  Connection* const known = context_.table.find(peer);
  if (known != nullptr && known->life.is_established())
    closer_.fail(*known, "it was started again");
  const uint32_t most = context_.settings.most_of_node;
  try {
    Connection* const connection = context_.table.find_or_make(peer, most);
    if (connection != nullptr || !context_.settings.reuses_places ||
        !closer_.give_up_silent(peer.nid, context_.table.of_node(peer.nid) < most, now_ns))
      return connection;
    return context_.table.find_or_make(peer, most);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void Handshake::send_accept(const Connection& connection, const LinkAddress& to,
                            const HandshakeBody& body) noexcept {
  HandshakeBody answer = own_body(connection.peer);
  answer.number = connection.life.number();
  answer.mtu = taken_bytes(connection);
  if (const SecureChannel* const secure = connection.protection.channel())
    std::memcpy(answer.share, secure->own_share, share_bytes);
  proof_.prove(ProofRole::accept, answer, body.nonce, body.number);
  send(FrameType::accept, to, body.number, answer);
}

// Both sides have proven what they had to.
void Handshake::establish(Connection& connection, const HandshakeBody& body,
                          std::unique_ptr<SecureChannel> secure, uint64_t now_ns) noexcept {
  connection.uid = body.uid;
  connection.protection.open(connection.life.number(), body.number, std::move(secure),
                             body.leaves_unchecked == 1 && needs_no_check(connection.peer));
  const uint32_t frame_bytes =
      std::min(taken_bytes(connection), body.mtu) - connection.protection.seal_bytes();
  const SendLimits limits{body.window_bytes, FrameCharge(body.slot_bytes), frame_bytes,
                          context_.link.properties().queue_delay_ns};
  const uint64_t shortest_timeout_ns = context_.settings.shortest_timeout_ns;
  connection.send.open(context_.settings.first_sequence, limits, shortest_timeout_ns);
  const RailPairs rails = pair_rails(context_.link, connection.peer, {body.rails, body.rail_count},
                                     connection.life.route().address);
  if (rails.count != 0) {
    connection.send.window.add_paths(rails, context_.link.properties().rails_used, limits,
                                     shortest_timeout_ns, now_ns);
    context_.timers.set(connection, now_ns);
  }
  connection.publish_data_bytes();
  connection.receive.open(body.first_sequence);
  connection.pending = {};
  connection.silence.heard(now_ns);
  const bool by_first_port =
      body.rail_count == 0 ||
      connection.life.route().address.without_rail() ==
          context_.link.rail_address(connection.peer, 0, body.rails[0]).without_rail();
  connection.life.establish(body.number, body.incarnation, by_first_port);
  context_.counters.connections_opened.increment();
  log_message(LogLevel::debug, "%s: connected with %s, frames of %u bytes", context_.link.name(),
              ProcessText(connection.peer.nid, connection.peer.pid).c_str(), frame_bytes);
}

std::string Handshake::describe() const {
  static constexpr const char* protection[] = {"frames are not protected",
                                               "frames are authenticated (AES-128-GMAC)",
                                               "frames are encrypted (AES-128-GCM)"};
  return proof_.describe() + ", " + protection[static_cast<size_t>(context_.settings.security)];
}

void Handshake::send_reset(const InboundFrame& frame, const FrameHeader& header,
                           uint64_t now_ns) noexcept {
  ResetBody body{header.connection, context_.link.id().nid, context_.link.id().pid, {}};
  if (frame.length < sizeof header + sizeof body || !may_answer(frame, now_ns)) return;
  proof_.prove(body);
  FrameHeader answer{};
  answer.type = FrameType::reset;
  send_frame(context_.link, answer, &body, sizeof body, *frame.from);
}

// The connection no longer exists at the peer: another process has its address now.
void Handshake::take_reset(const InboundFrame& frame) noexcept {
  ResetBody body;
  if (!read_frame(frame, body, context_.counters)) return;
  Connection* const connection = context_.table.find({body.nid, body.pid});
  if (connection == nullptr || !connection->life.is_established() ||
      connection->life.peer_number() != body.number || !connection->has_path_to(*frame.from) ||
      !proof_.check(body)) {
    context_.counters.strangers.increment();
    return;
  }
  context_.counters.resets_received.increment();
  closer_.fail(*connection, "another process has taken its place");
}

}  // namespace lintel

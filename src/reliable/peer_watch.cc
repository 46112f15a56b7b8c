#include "reliable/peer_watch.h"

#include <algorithm>

#include "transport/rails.h"
#include "util/lock.h"
#include "util/node_identity.h"

namespace lintel {

namespace {
// After this time without an expected answer, links that can test whether the process exists do so.
constexpr uint64_t process_check_ns = 200'000'000;
// Maximum number of polls with frames that defer late timers: frames may never stop coming.
constexpr unsigned most_deferred_polls = 256;
// Number of calls of check() in the time that a silent peer is given.
constexpr uint64_t checks_per_timeout = 4;
constexpr uint64_t never = ConnectionTimers::never;

constexpr const char* gone = "its process is gone";
constexpr const char* unsealed =
    "libcrypto fails to seal a frame for it, and none is sent without a seal";
constexpr const char* silent = "it has not answered for the time that PTL_PEER_TIMEOUT_MS allows";
}  // namespace

void PeerWatch::run_timers(uint64_t now_ns, bool reads) noexcept {
  const uint64_t late_ns = elapsed_ns(context_.timers.earliest_ns(), now_ns);
  if (pauses_.is_pause(late_ns)) [[unlikely]] {
    // Answers may wait to be read.
    if (reads && ++deferred_polls_ < most_deferred_polls) return;
    deferred_polls_ = 0;
    extend_all(late_ns, now_ns);
  }
  polled_ns_ = now_ns;
  take_unreachable(now_ns);
  context_.timers.run([&](Connection& connection) {
    polling.assert_held();
    return run(connection, now_ns);
  });
}

// After a pause of this process.
void PeerWatch::extend_all(uint64_t late_ns, uint64_t now_ns) noexcept {
  const OwnPauses::Extension extension = pauses_.end(late_ns, now_ns);
  log_message(LogLevel::debug, "%s: this process did not look at its peers for %.1f s; they get %s",
              context_.link.name(), static_cast<double>(late_ns) * 1e-9,
              extension.full_time ? "the full time to answer again" : "as much longer to answer");
  context_.table.for_each([&](Connection& connection) {
    const LockGuard guard(connection.lock);
    connection.silence.extend(extension, now_ns);
    if (Opening* const opening = connection.life.opening()) opening->extend(extension, now_ns);
  });
}

void PeerWatch::take_unreachable(uint64_t now_ns) noexcept {
  LinkAddress addresses[16];
  const unsigned count = context_.link.take_unreachable(addresses, std::size(addresses));
  for (unsigned i = 0; i < count; ++i) {
    context_.timers.for_each([&](Connection& connection) {
      const LockGuard guard(connection.lock);
      if (connection.life.route().address == addresses[i])
        connection.silence.report_unreachable(now_ns);
    });
  }
}

uint64_t PeerWatch::run(Connection& connection, uint64_t now_ns) noexcept {
  data_.take_kept(connection, now_ns);
  Link::Failure failure{Link::Failure::Kind::gone, nullptr};
  {
    const LockGuard guard(connection.lock);
    const uint64_t next_ns = run_locked(connection, now_ns, failure);
    if (failure.reason == nullptr) {
      if (next_ns == never) ConnectionTimers::done(connection);
      return next_ns;
    }
  }
  if (failure.kind == Link::Failure::Kind::refused)
    closer_.refused(connection, failure.reason);
  else
    closer_.fail(connection, failure.reason);
  return now_ns;  // without timers the next time
}

uint64_t PeerWatch::run_locked(Connection& connection, uint64_t now_ns,
                               Link::Failure& failure) noexcept {
  const bool established = connection.life.is_established();
  const bool unreachable =
      connection.silence.is_unreachable(connection.peer.nid == context_.link.id().nid, now_ns);
  if (established) return run_established(connection, unreachable, now_ns, failure.reason);
  if (!connection.life.is(ConnectionState::opening)) return never;
  return handshake_.go_on(connection, unreachable, now_ns, failure);
}

// Links know the first port of a peer alone.
bool PeerWatch::is_gone(Connection& connection, uint64_t awaited_ns) noexcept {
  if (awaited_ns <= process_check_ns) return false;
  SendWindow& window = connection.send.window;
  if (window.has_several_paths())
    return context_.link.is_gone(connection.peer, window.further().rails.ports[0]);
  return connection.life.is_by_first_port() &&
         context_.link.is_gone(connection.peer, connection.life.route().address);
}

// Why a peer that has to answer must fail; nullptr: it may still answer. `spent_ns`: this much of
// its time counts as over.
const char* PeerWatch::cause_of_silence(Connection& connection, bool unreachable, uint64_t spent_ns,
                                        uint64_t now_ns) noexcept {
  const uint64_t awaited_ns = connection.silence.awaited_ns(now_ns);
  if (awaited_ns + spent_ns > context_.settings.peer_timeout_ns) return silent;
  return unreachable || is_gone(connection, awaited_ns) ? gone : nullptr;
}

uint64_t PeerWatch::run_established(Connection& connection, bool unreachable, uint64_t now_ns,
                                    const char*& failure) noexcept {
  if (connection.protection.is_broken()) {
    failure = unsealed;
    return never;
  }
  if (now_ns >= connection.pending.deadline_ns()) transmitter_.acknowledge(connection, now_ns);
  if (connection.send.window.mtu().is_due(now_ns)) [[unlikely]]
    follow_mtu(connection, now_ns);
  if (connection.send.window.has_several_paths()) [[unlikely]]
    follow_paths(connection, now_ns);
  if (now_ns >= connection.send.window.deadline_ns()) {
    failure = cause_of_silence(connection, unreachable, 0, now_ns);
    if (failure != nullptr) return never;
    time_out(connection, now_ns);
  } else if (connection.send.take_retry(now_ns) && connection.send.window.can_send()) {
    transmitter_.transmit(connection, now_ns);
  }
  const uint64_t keep_alive_ns = keep_alive(connection, unreachable, now_ns, failure);
  return std::min(
      {connection.pending.deadline_ns(), connection.send.next_timer_ns(), keep_alive_ns});
}

void PeerWatch::time_out(Connection& connection, uint64_t now_ns) noexcept {
  SendWindow& window = connection.send.window;
  bool lost = false;
  for (unsigned i = 0; i < window.paths(); ++i) {
    SendPath& path = window.path(i);
    if (now_ns < path.deadline_ns()) continue;
    if (window.time_out(path, now_ns))
      lost = true;
    else
      transmitter_.probe(connection, path, now_ns);
  }
  if (!lost) return;
  context_.counters.timeouts.increment();
  transmitter_.transmit(connection, now_ns);
  // Whether what is sent again arrives now, or only short frames do (PathMtu).
  if (window.empty() || window.queue().oldest()->length <= PathMtu::least_bytes) return;
  SendPath& path = window.preferred();
  path.losses().renew_probe();
  transmitter_.probe(connection, path, now_ns);
}

// Probes suspended paths; reports paths that are lost or work again.
void PeerWatch::follow_paths(Connection& connection, uint64_t now_ns) noexcept {
  SendWindow& window = connection.send.window;
  const bool heard = connection.silence.lasts_ns(now_ns) < PathHealth::lost_after_ns;
  for (unsigned i = 0; i < window.paths(); ++i) {
    PathHealth& health = window.further().health[i];
    if (now_ns >= health.due_ns(window.empty()))
      transmitter_.probe_suspended(connection, window.path(i), now_ns);
    const PathHealth::Change change = health.take_change(heard, now_ns);
    if (change == PathHealth::Change::none) continue;
    const bool lost = change == PathHealth::Change::lost;
    (lost ? context_.counters.paths_lost : context_.counters.paths_back).increment();
    // Once for each node, unless it lasts. UINT8_MAX is the first rail, too.
    const unsigned rail = window.further().rails.to[i].rail() % UINT8_MAX;
    const bool due = said_.is_due(
        uint64_t{lost ? 2u : 3u} << 40 | uint64_t{rail} << 32 | connection.peer.nid, now_ns);
    const std::string_view name = name_of_rail(context_.link.properties().device, rail);
    log_message(due ? LogLevel::info : LogLevel::debug, "%s: rail %u (%.*s) to %s %s",
                context_.link.name(), rail, static_cast<int>(name.size()), name.data(),
                ProcessText(connection.peer.nid, connection.peer.pid).c_str(),
                lost ? "does not answer; its frames go by the other ones" : "is back");
  }
}

// A peer that has sent part of a message, or frames after a missing one, has more to send. If it is
// silent it is probed, and fails without an answer: otherwise its buffers would never be released.
// Returns when to check again.
uint64_t PeerWatch::keep_alive(Connection& connection, bool unreachable, uint64_t now_ns,
                               const char*& failure) noexcept {
  ReceivingHalf& receive = connection.receive;
  receive.parts.drop_before(context_.received, receive.window.expected());
  if (!receive.is_unfinished()) return never;
  const uint64_t pause_ns = context_.settings.keepalive_ns();
  const uint64_t next_ns = connection.silence.last_sign_ns() + pause_ns;
  if (now_ns < next_ns)
    return receive.window.has_expected() ? std::min(next_ns, now_ns + DataReceiver::room_retry_ns)
                                         : next_ns;
  connection.silence.await(now_ns);
  failure = cause_of_silence(connection, unreachable, 2 * pause_ns + 1, now_ns);
  if (failure == nullptr) {
    connection.silence.probed(now_ns);
    transmitter_.probe_all(connection, now_ns);
  }
  return now_ns + pause_ns;
}

// Takes the next step of PathMtu for the path to the peer.
void PeerWatch::follow_mtu(Connection& connection, uint64_t now_ns) noexcept {
  PathMtu& path = connection.send.window.mtu();
  const uint32_t before = connection.send.frame_bytes();
  const PathMtu::Step step = path.go_on(now_ns);
  const uint32_t tag = connection.protection.seal_bytes();
  if (step.change != PathMtu::Change::none) {
    connection.publish_data_bytes();
    connection.send.window.follow_mtu();
  }
  if (step.change == PathMtu::Change::narrowed) {
    context_.counters.paths_narrowed.increment();
    // Once for each node, unless it lasts.
    const bool due = said_.is_due(uint64_t{1} << 32 | connection.peer.nid, now_ns);
    log_message(
        due ? LogLevel::info : LogLevel::debug,
        "%s: frames of %u bytes do not arrive at %s, though short ones do; sending frames of %u "
        "bytes until it is known what the path takes. Set the same MTU for all network interfaces "
        "and switches on the way",
        context_.link.name(), before + tag,
        ProcessText(connection.peer.nid, connection.peer.pid).c_str(), path.frame_bytes() + tag);
    transmitter_.transmit(connection, now_ns);
  } else if (step.change == PathMtu::Change::widened) {
    context_.counters.paths_widened.increment();
    log_message(LogLevel::debug, "%s: frames of %u bytes arrive at %s", context_.link.name(),
                path.frame_bytes() + tag,
                ProcessText(connection.peer.nid, connection.peer.pid).c_str());
  }
  if (step.probe_bytes == 0) return;
  context_.counters.path_probes.increment();
  transmitter_.probe_path(connection, step.probe_bytes, now_ns);
}

void PeerWatch::check(Link* const* links, unsigned count, uint64_t now_ns) noexcept {
  const uint64_t due_ns = polled_ns_ + context_.settings.peer_timeout_ns / checks_per_timeout;
  const uint64_t late_ns = elapsed_ns(due_ns, now_ns);
  if (count != 0 && polled_ns_ != 0 && pauses_.is_pause(late_ns)) [[unlikely]]
    extend_all(late_ns, now_ns);
  polled_ns_ = now_ns;
  for (unsigned i = 0; i < count; ++i) {
    auto& connection = static_cast<Connection&>(*links[i]);
    const char* failure = nullptr;
    {
      const LockGuard guard(connection.lock);
      PeerSilence& silence = connection.silence;
      if (!connection.life.is_established() ||
          silence.lasts_ns(now_ns) < context_.settings.keepalive_ns())
        continue;
      if (is_gone(connection, silence.awaited_ns(now_ns))) failure = gone;
      if (connection.send.window.in_flight_bytes() == 0) {
        silence.await(now_ns);
        if (silence.awaited_ns(now_ns) > context_.settings.peer_timeout_ns)
          failure = silent;
        else
          transmitter_.probe_all(connection, now_ns);
      }
    }
    if (failure != nullptr) closer_.fail(connection, failure);
  }
}

}  // namespace lintel

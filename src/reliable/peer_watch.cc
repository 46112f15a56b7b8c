#include "reliable/peer_watch.h"

#include <algorithm>

#include "util/lock.h"
#include "util/log.h"

namespace lintel {

namespace {
// After this time without an expected answer, links that can test whether the process exists do so.
constexpr uint64_t ask_for_silent_ns = 200'000'000;
// Maximum number of polls with frames that put off late timers: frames may never stop coming.
constexpr unsigned most_put_off = 256;
// Number of calls of check() in the time after which a silent peer fails.
constexpr uint64_t checks_per_timeout = 4;
constexpr uint64_t never = ConnectionTimers::never;

constexpr const char* gone = "its process is gone";
constexpr const char* unsealed =
    "libcrypto fails to seal a frame for it, and none is sent without a seal";
constexpr const char* silent = "it has not answered for the time that PTL_PEER_TIMEOUT_MS allows";
}  // namespace

void PeerWatch::run_timers(uint64_t now_ns, bool reads) noexcept {
  const uint64_t late_ns = elapsed_ns(timers_.earliest_ns(), now_ns);
  if (pauses_.is_pause(late_ns)) [[unlikely]] {
    // Answers may wait to be read.
    if (reads && ++put_off_ < most_put_off) return;
    put_off_ = 0;
    excuse_all(late_ns, now_ns);
  }
  looked_ns_ = now_ns;
  take_hints(now_ns);
  timers_.run([&](Connection& connection) {
    polling.assert_held();
    return look(connection, now_ns);
  });
}

// Excuses all peers after a pause of this process.
void PeerWatch::excuse_all(uint64_t late_ns, uint64_t now_ns) noexcept {
  const OwnPauses::Excuse excuse = pauses_.end(late_ns, now_ns);
  log_message(LogLevel::debug, "%s: this process did not look at its peers for %.1f s; they get %s",
              context_.link.name(), static_cast<double>(late_ns) * 1e-9,
              excuse.full_time ? "the full time to answer again" : "as much longer to answer");
  table_.for_each([&](Connection& connection) {
    const LockGuard guard(connection.lock);
    connection.silence.excuse(excuse, now_ns);
    if (connection.opening != nullptr) connection.opening->excuse(excuse, now_ns);
  });
}

void PeerWatch::take_hints(uint64_t now_ns) noexcept {
  LinkAddress addresses[16];
  const unsigned count = context_.link.take_unreachable(addresses, std::size(addresses));
  for (unsigned i = 0; i < count; ++i) {
    timers_.for_each([&](Connection& connection) {
      const LockGuard guard(connection.lock);
      if (connection.route.address == addresses[i]) connection.silence.hint(now_ns);
    });
  }
}

uint64_t PeerWatch::look(Connection& connection, uint64_t now_ns) noexcept {
  data_.take_kept(connection, now_ns);
  Link::Failure failure{Link::Failure::Kind::gone, nullptr};
  {
    const LockGuard guard(connection.lock);
    const uint64_t next_ns = look_locked(connection, now_ns, failure);
    if (failure.reason == nullptr) {
      if (next_ns == never) ConnectionTimers::done(connection);
      return next_ns;
    }
  }
  if (failure.kind == Link::Failure::Kind::refused)
    closer_.refused(connection, failure.reason);
  else
    closer_.fail(connection, failure.reason);
  return now_ns;  // the next look finds no timers
}

uint64_t PeerWatch::look_locked(Connection& connection, uint64_t now_ns,
                                Link::Failure& failure) noexcept {
  const bool established = connection.is_established();
  if (established) received_.catch_up(connection);
  const bool unreachable =
      connection.silence.is_unreachable(connection.peer.nid == context_.link.id().nid, now_ns);
  if (established) return look_at_established(connection, unreachable, now_ns, failure.reason);
  if (!connection.is(ConnectionState::opening)) return never;
  return handshake_.go_on(connection, unreachable, now_ns, failure);
}

bool PeerWatch::is_gone(Connection& connection, uint64_t awaited_ns) noexcept {
  return awaited_ns > ask_for_silent_ns &&
         context_.link.is_gone(connection.peer, connection.route.address);
}

uint64_t PeerWatch::look_at_established(Connection& connection, bool unreachable, uint64_t now_ns,
                                        const char*& failure) noexcept {
  if (connection.secure != nullptr && connection.secure->send.is_broken()) {
    failure = unsealed;
    return never;
  }
  SendWindow& window = connection.send;
  if (now_ns >= connection.pending.deadline_ns()) transmitter_.acknowledge(connection, now_ns);
  paths_.look(connection, now_ns);
  if (now_ns >= window.deadline_ns()) {
    const uint64_t awaited_ns = connection.silence.awaited_ns(now_ns);
    if (awaited_ns > context_.settings.peer_timeout_ns)
      failure = silent;
    else if (unreachable || is_gone(connection, awaited_ns))
      failure = gone;
    if (failure != nullptr) return never;
    if (window.time_out(now_ns)) {
      context_.counters.timeouts.increment();
      transmitter_.transmit(connection, now_ns);
      // Whether what is sent again arrives now, or only short frames do (PathMtu).
      if (window.oldest() != nullptr && window.oldest()->length > PathMtu::least_bytes) {
        window.renew_probe();
        transmitter_.probe(connection, now_ns);
      }
    } else {
      transmitter_.probe(connection, now_ns);
    }
  } else if (now_ns >= connection.retry_ns) {
    connection.retry_ns = never;
    if (window.can_send()) transmitter_.transmit(connection, now_ns);
  }
  const uint64_t unfinished_ns = look_at_unfinished(connection, unreachable, now_ns, failure);
  const uint64_t next_ns = std::min(
      {connection.pending.deadline_ns(), connection.retry_ns, window.deadline_ns(), unfinished_ns});
  return std::min(next_ns, window.path().timer_ns());
}

// A peer that has sent part of a message, or frames after a missing one, has more to send. If it is
// silent it is probed, and fails without an answer: otherwise its buffers would never be released.
// Returns when to check again.
uint64_t PeerWatch::look_at_unfinished(Connection& connection, bool unreachable, uint64_t now_ns,
                                       const char*& failure) noexcept {
  if (connection.half.buffer == nullptr && !connection.receive.has_early() &&
      !data_.awaits_parts(connection))
    return never;
  const uint64_t pause_ns = context_.settings.longest_silence_ns();
  const uint64_t next_ns = connection.silence.last_sign_ns() + pause_ns;
  if (now_ns < next_ns)
    return connection.receive.has_expected()
               ? std::min(next_ns, now_ns + DataReceiver::room_retry_ns)
               : next_ns;
  connection.silence.await(now_ns);
  const uint64_t awaited_ns = connection.silence.awaited_ns(now_ns);
  if (awaited_ns + 2 * pause_ns >= context_.settings.peer_timeout_ns) {
    failure = silent;
  } else if (unreachable || is_gone(connection, awaited_ns)) {
    failure = gone;
  } else {
    connection.silence.asked(now_ns);
    transmitter_.probe(connection, now_ns);
  }
  return now_ns + pause_ns;
}

void PeerWatch::check(Link* const* links, unsigned count, uint64_t now_ns) noexcept {
  const uint64_t due_ns = looked_ns_ + context_.settings.peer_timeout_ns / checks_per_timeout;
  const uint64_t late_ns = elapsed_ns(due_ns, now_ns);
  if (count != 0 && looked_ns_ != 0 && pauses_.is_pause(late_ns)) [[unlikely]]
    excuse_all(late_ns, now_ns);
  looked_ns_ = now_ns;
  for (unsigned i = 0; i < count; ++i) {
    auto& connection = static_cast<Connection&>(*links[i]);
    const char* failure = nullptr;
    {
      const LockGuard guard(connection.lock);
      PeerSilence& silence = connection.silence;
      if (!connection.is_established() ||
          silence.lasts_ns(now_ns) < context_.settings.longest_silence_ns())
        continue;
      if (is_gone(connection, silence.awaited_ns(now_ns))) failure = gone;
      if (connection.send.in_flight_bytes() == 0) {
        silence.await(now_ns);
        if (silence.awaited_ns(now_ns) > context_.settings.peer_timeout_ns)
          failure = silent;
        else
          transmitter_.probe(connection, now_ns);
      }
    }
    if (failure != nullptr) closer_.fail(connection, failure);
  }
}

}  // namespace lintel

// Timers: retransmission, delayed acknowledgements, attempts to connect; and peers that fall silent.
// Message path for list(); the rest is reached when a timer is due.
//
// Connections with a timer are on a list of the poller's. Whoever sets one from another thread hands
// the connection over through a stack without locks, and wakes the poller if it would sleep too long.
#include <algorithm>
#include <mutex>

#include "reliable/reliable_transport.h"
#include "util/log.h"

namespace lintel {

namespace {

// The network says that nobody listens there. The peer may be about to start, and the word may be
// forged: only after this long, and this many, without a sign of life.
constexpr uint64_t believe_unreachable_ns = 1'000'000'000;
// Of this very node the kernel knows at once, and nobody can forge what it says.
constexpr uint64_t believe_own_node_ns = 10'000'000;
constexpr unsigned believe_unreachable_hints = 4;

// A peer that is silent for this long while it should answer is asked for where links can do so.
constexpr uint64_t ask_for_silent_ns = 200'000'000;
// A peer that was not heard for this time is asked for an answer.
constexpr uint64_t most_silence_ns = 1'000'000'000;

constexpr const char* gone = "its process is gone";
constexpr const char* silence = "it has not answered for the time that PTL_PEER_TIMEOUT_MS allows";

}  // namespace

void ReliableTransport::list(Connection& connection, uint64_t at_ns) noexcept {
  if (!connection.listed) {
    connection.listed = true;
    Connection* head = newly_listed_.load(std::memory_order_relaxed);
    do {
      connection.next_listed = head;
    } while (!newly_listed_.compare_exchange_weak(head, &connection, std::memory_order_release,
                                                  std::memory_order_relaxed));
  }
  uint64_t earliest = earliest_timer_ns_.load(std::memory_order_relaxed);
  while (at_ns < earliest) {
    if (!earliest_timer_ns_.compare_exchange_weak(earliest, at_ns, std::memory_order_seq_cst))
      continue;
    // The poller may have gone quiet or to sleep without knowing of this one.
    if (!disturbed_.load(std::memory_order_relaxed))
      disturbed_.store(true, std::memory_order_release);
    if (doorbell_ != nullptr) doorbell_->ring_if_sleeping();
    return;
  }
}

void ReliableTransport::adopt_listed() noexcept {
  Connection* added = newly_listed_.exchange(nullptr, std::memory_order_acquire);
  while (added != nullptr) {
    Connection* const next = added->next_listed;
    added->next_listed = active_;
    active_ = added;
    added = next;
  }
}

void ReliableTransport::run_timers(MessageSink& sink, uint64_t now) noexcept {
  take_unreachable_hints(now);
  // Whoever sets a timer from here on lowers this again.
  earliest_timer_ns_.exchange(UINT64_MAX, std::memory_order_seq_cst);
  adopt_listed();
  uint64_t earliest = UINT64_MAX;
  Connection** link = &active_;
  while (Connection* const connection = *link) {
    const char* failure = nullptr;
    uint64_t next = UINT64_MAX;
    if (connection->receive.has_expected() && take_kept(sink, *connection, now))
      deliver_batch(sink);
    {
      const std::lock_guard guard(connection->lock);
      next = run_timers_of(*connection, now, failure);
      if (next == UINT64_MAX && failure == nullptr) {
        *link = connection->next_listed;
        connection->listed = false;
      }
    }
    if (failure != nullptr) {
      fail(sink, *connection, failure);
      next = now;  // comes off the list at the next look
    }
    if (next != UINT64_MAX) link = &connection->next_listed;
    earliest = std::min(earliest, next);
  }
  uint64_t current = earliest_timer_ns_.load(std::memory_order_relaxed);
  while (earliest < current &&
         !earliest_timer_ns_.compare_exchange_weak(current, earliest, std::memory_order_seq_cst)) {
  }
}

// Lock held.
uint64_t ReliableTransport::run_timers_of(Connection& connection, uint64_t now,
                                          const char*& failure) noexcept {
  if (connection.state.load(std::memory_order_relaxed) == ConnectionState::established)
    make_up_for(connection);
  const uint64_t waited_ns =
      connection.waiting_since_ns != 0 ? elapsed_ns(connection.waiting_since_ns, now) : 0;
  const bool believes_unreachable =
      connection.unreachable_hints >= believe_unreachable_hints &&
      elapsed_ns(connection.hinted_since_ns, now) >
          (connection.peer.nid == own_id_.nid ? believe_own_node_ns : believe_unreachable_ns);
  switch (connection.state.load(std::memory_order_relaxed)) {
    case ConnectionState::idle:
    case ConnectionState::failed:
      return UINT64_MAX;
    case ConnectionState::opening: {
      Opening& opening = *connection.opening;
      if (opening.unreachable || believes_unreachable) {
        failure = "no such process there";
      } else if (elapsed_ns(opening.started_ns, now) > settings_.peer_timeout_ns) {
        failure = "it does not answer";
      } else if (now >= opening.next_attempt_ns) {
        attempt_opening(connection, now);
      }
      return opening.next_attempt_ns;
    }
    case ConnectionState::established:
      break;
  }
  if (now >= connection.ack_deadline_ns) send_ack(connection, FrameType::ack, now);
  if (now >= connection.send.deadline_ns()) {
    if (waited_ns > settings_.peer_timeout_ns) {
      failure = silence;
      return UINT64_MAX;
    }
    if (believes_unreachable || (waited_ns > ask_for_silent_ns &&
                                 link_->is_gone(connection.peer, connection.route.address))) {
      failure = gone;
      return UINT64_MAX;
    }
    counts_.timeouts.add();
    connection.send.time_out(now);
    transmit(connection, now);
  } else if (now >= connection.retry_ns) {
    connection.retry_ns = UINT64_MAX;
    if (connection.send.can_send()) transmit(connection, now);
  }
  const uint64_t watch_ns = watch_unfinished(connection, now, believes_unreachable, failure);
  return std::min(
      {connection.ack_deadline_ns, connection.retry_ns, connection.send.deadline_ns(), watch_ns});
}

uint64_t ReliableTransport::longest_silence_ns() const noexcept {
  return std::min(settings_.peer_timeout_ns / 16, most_silence_ns);
}

// Lock held. A peer that has sent part of a message, or frames after one that is missing, has more to
// send. If it is silent it is asked for an answer, and fails without one: otherwise its buffers would
// never be released. Returns when to look again.
uint64_t ReliableTransport::watch_unfinished(Connection& connection, uint64_t now, bool unreachable,
                                             const char*& failure) noexcept {
  if (connection.half.buffer == nullptr && !connection.receive.has_early()) return UINT64_MAX;
  const uint64_t pause_ns = longest_silence_ns();
  const uint64_t next_ns = std::max(connection.last_heard_ns, connection.probed_ns) + pause_ns;
  if (now < next_ns)
    return connection.receive.has_expected() ? std::min(next_ns, now + room_retry_ns) : next_ns;
  if (connection.waiting_since_ns == 0) connection.waiting_since_ns = now;
  const uint64_t waited_ns = elapsed_ns(connection.waiting_since_ns, now);
  if (waited_ns + 2 * pause_ns >= settings_.peer_timeout_ns) {
    failure = silence;
  } else if (unreachable || (waited_ns > ask_for_silent_ns &&
                             link_->is_gone(connection.peer, connection.route.address))) {
    failure = gone;
  } else {
    connection.probed_ns = now;
    send_ack(connection, FrameType::probe, now);
  }
  return now + pause_ns;
}

// Peers from which the core expects an answer: those that are silent are asked, and fail without one.
void ReliableTransport::check_peers(MessageSink& sink, Link* const* watch,
                                    unsigned count) noexcept {
  make_up_for_all();
  const uint64_t now = settings_.clock();
  for (unsigned i = 0; i < count; ++i) {
    auto& connection = static_cast<Connection&>(*watch[i]);
    bool silent = false;
    bool ask = false;
    LinkAddress address;
    {
      const std::lock_guard guard(connection.lock);
      if (connection.state.load(std::memory_order_relaxed) != ConnectionState::established ||
          elapsed_ns(connection.last_heard_ns, now) < longest_silence_ns())
        continue;
      ask = connection.waiting_since_ns != 0 &&
            elapsed_ns(connection.waiting_since_ns, now) > ask_for_silent_ns;
      address = connection.route.address;
      if (connection.send.in_flight_bytes() == 0) {
        if (connection.waiting_since_ns == 0) connection.waiting_since_ns = now;
        silent = elapsed_ns(connection.waiting_since_ns, now) > settings_.peer_timeout_ns;
        if (!silent) send_ack(connection, FrameType::probe, now);
      }
    }
    if (silent) {
      fail(sink, connection, silence);
    } else if (ask && link_->is_gone(connection.peer, address)) {
      fail(sink, connection, gone);
    }
  }
}

void ReliableTransport::fail(MessageSink& sink, Connection& connection, const char* why) noexcept {
  if (batch_.connection == &connection) deliver_batch(sink);
  FrameBuffer* unsent = nullptr;
  FrameBuffer* early = nullptr;
  {
    const std::lock_guard guard(connection.lock);
    if (connection.state.load(std::memory_order_relaxed) == ConnectionState::failed) return;
    connection.state.store(ConnectionState::failed, std::memory_order_release);
    unsent = connection.send.take_all();
    early = connection.receive.take_all();
    connection.opening.reset();
  }
  send_pool_.release_chain(unsent);
  receive_pool_.release_chain(early);
  reassembly_.drop(connection.half);
  counts_.connections_failed.add();
  log_message(LogLevel::info, "%s: the connection with nid 0x%08x pid %u ends: %s", link_->name(),
              connection.peer.nid, connection.peer.pid, why);
  sink.on_peer_failed(connection);
}

}  // namespace lintel

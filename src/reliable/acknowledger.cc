#include "reliable/acknowledger.h"

#include <utility>

#include "util/assert.h"
#include "util/lock.h"

namespace lintel {

void Acknowledger::acknowledge_touched(uint64_t now_ns) noexcept {
  while (!touched_.is_empty()) {
    Connection& connection = touched_.pop();
    const bool at_once = std::exchange(connection.acknowledge_at_once, false);
    const LockGuard guard(connection.lock);
    if (connection.is_established() && (at_once || connection.pending.bytes() >= at_once_bytes_))
      transmitter_.acknowledge(connection, now_ns);
  }
}

bool Acknowledger::holds(Connection& connection, const MessageHeader& header,
                         uint64_t now_ns) noexcept {
  if (!is_acknowledgement(header)) {
    connection.habit.sent(now_ns);
    connection.held_back = false;
    return false;
  }
  connection.habit.acknowledged(now_ns);
  if (!settings_.holds_acknowledgements || !connection.habit.expects_reply() ||
      connection.send.unsent_frames() > 1 || (held_ != nullptr && held_ != &connection))
    return false;
  connection.held_back = true;
  held_ = &connection;
  held_until_ns_ = now_ns + connection.habit.patience_ns();
  return true;
}

void Acknowledger::release_held(uint64_t now_ns) noexcept {
  // After a longer time no thread was polling.
  constexpr uint64_t late_ns = 20'000;
  LINTEL_ASSERT(held_ != nullptr && held_until_ns_ != 0);
  Connection& connection = *std::exchange(held_, nullptr);
  const LockGuard guard(connection.lock);
  if (!std::exchange(connection.held_back, false)) return;
  connection.habit.hold_expired(now_ns > held_until_ns_ + late_ns);
  if (connection.is_established()) transmitter_.transmit(connection, now_ns);
}

}  // namespace lintel

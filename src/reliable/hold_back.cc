// Acknowledgements of messages that wait for the application's answer, to travel in one frame with it.
// Message path; the poller, but for holds_back() of other messages.
//
// In a round trip an acknowledgement of its own costs the time of a system call before the application
// learns of the message that it is about to answer. Where it has answered at once again and again (ReplyHabit),
// its next message takes the acknowledgement along. If none comes the next polls send it; who computes
// instead of polling makes its peer wait for the progress thread, and is not trusted again soon.
#include <mutex>

#include "reliable/reliable_transport.h"

namespace lintel {

namespace {
// Later than this nobody was polling.
constexpr uint64_t late_ns = 20'000;
}  // namespace

// Lock held. True: what was just queued is not to be transmitted yet. One connection at a time: who talks with
// several at once has other messages to wait for.
bool ReliableTransport::holds_back(Connection& connection, const MessageHeader& header,
                                   uint64_t now) noexcept {
  if (!is_acknowledgement(header)) {
    connection.habit.sent(now);
    connection.held_back = false;
    return false;
  }
  connection.habit.acknowledged(now);
  if (!settings_.holds_acknowledgements || !connection.habit.expects_reply() ||
      connection.send.unsent_frames() > 1 || (held_ != nullptr && held_ != &connection))
    return false;
  connection.held_back = true;
  held_ = &connection;
  held_until_ns_ = now + connection.habit.patience_ns();
  return true;
}

void ReliableTransport::end_hold(uint64_t now) noexcept {
  Connection& connection = *held_;
  held_ = nullptr;
  const std::lock_guard guard(connection.lock);
  if (!connection.held_back) return;
  connection.held_back = false;
  connection.habit.waited_in_vain(now > held_until_ns_ + late_ns);
  if (connection.state.load(std::memory_order_relaxed) == ConnectionState::established)
    transmit(connection, now);
}

}  // namespace lintel

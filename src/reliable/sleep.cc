// Going quiet, going to sleep, and closing. Path into and out of sleep.
//
// Asking the link costs a system call where it is a socket. When nothing has come for a while and
// nothing is due, the poller stops asking: the watch notices what comes, sets `disturbed_` and rings
// the doorbell. A process that talks through shared memory pays one load per poll for its network.
#include <algorithm>
#include <mutex>

#include "reliable/reliable_transport.h"
#include "util/log.h"

namespace lintel {

namespace {
// Without a descriptor the poller looks itself: the more seldom, the longer nothing has come, up to
// what the link allows.
constexpr int64_t share_of_silence = 8;
}  // namespace

void ReliableTransport::set_doorbell(Doorbell& doorbell) noexcept {
  doorbell_ = &doorbell;
  if (link_->descriptor() == PacketLink::no_descriptor || watch_.running()) return;
  std::string reason;
  if (!watch_.start(link_->descriptor(), disturbed_, doorbell, reason))
    log_message(LogLevel::warn, "%s: %s; the processor will not rest", link_->name(),
                reason.c_str());
}

void ReliableTransport::go_quiet(uint64_t now) noexcept {
  if (!watches() || settings_.polls_always) return;
  last_frame_ns_ = now;  // not again at once, if it does not work out
  if (active_ != nullptr) return;
  disturbed_.store(false, std::memory_order_seq_cst);
  if (newly_listed_.load(std::memory_order_seq_cst) != nullptr || !link_->arm()) return;
  watch_.enable();
  quiet_ = true;
}

// Whoever sleeps was rung by what disturbed the quiet.
void ReliableTransport::leave_quiet(uint64_t now) noexcept {
  quiet_ = false;
  last_frame_ns_ = now;
  watch_.disable();
  link_->disarm();
}

bool ReliableTransport::arm(bool) noexcept {
  make_up_for_all();
  if (held_ != nullptr) end_hold(settings_.clock());
  if (quiet_) return !disturbed_.load(std::memory_order_seq_cst);
  const uint64_t now = settings_.clock();
  adopt_listed();
  for (Connection* connection = active_; connection != nullptr;
       connection = connection->next_listed) {
    const std::lock_guard guard(connection->lock);
    if (connection->state.load(std::memory_order_relaxed) == ConnectionState::established &&
        connection->unacknowledged_bytes != 0)
      send_ack(*connection, FrameType::ack, now);
  }
  if (!watches()) return true;
  disturbed_.store(false, std::memory_order_seq_cst);
  if (newly_listed_.load(std::memory_order_seq_cst) != nullptr || !link_->arm()) return false;
  watch_.enable();
  return true;
}

// The watch stays enabled: another thread may sleep in the belief that it is, as the progress thread
// does while an application thread polls for a moment. At worst it rings once for nothing.
void ReliableTransport::disarm() noexcept {
  if (!quiet_) link_->disarm();
}

int64_t ReliableTransport::sleep_limit_ns() noexcept {
  const uint64_t earliest = earliest_timer_ns_.load(std::memory_order_seq_cst);
  const uint64_t now = settings_.clock();
  int64_t limit_ns = -1;
  if (earliest != UINT64_MAX) limit_ns = earliest > now ? static_cast<int64_t>(earliest - now) : 0;
  if (watches()) return limit_ns;
  const auto silence_ns = static_cast<int64_t>(elapsed_ns(last_frame_ns_, now));
  const int64_t pause_ns = std::clamp(silence_ns / share_of_silence, shortest_pause_ns,
                                      std::max(link_->longest_pause_ns(), shortest_pause_ns));
  return limit_ns < 0 ? pause_ns : std::min(limit_ns, pause_ns);
}

bool ReliableTransport::all_delivered() noexcept {
  make_up_for_all();
  if (held_ != nullptr) end_hold(settings_.clock());
  const uint64_t now = settings_.clock();
  adopt_listed();
  bool delivered = true;
  for (Connection* connection = active_; connection != nullptr;
       connection = connection->next_listed) {
    const std::lock_guard guard(connection->lock);
    if (connection->state.load(std::memory_order_relaxed) != ConnectionState::established) continue;
    if (connection->unacknowledged_bytes != 0) send_ack(*connection, FrameType::ack, now);
    delivered &= connection->send.empty();
  }
  return delivered;
}

void ReliableTransport::take_unreachable_hints(uint64_t now) noexcept {
  constexpr unsigned most = 16;
  LinkAddress addresses[most];
  const unsigned count = link_->take_unreachable(addresses, most);
  for (unsigned i = 0; i < count; ++i) {
    for (Connection* connection = active_; connection != nullptr;
         connection = connection->next_listed) {
      const std::lock_guard guard(connection->lock);
      if (!(connection->route.address == addresses[i])) continue;
      if (connection->unreachable_hints == 0) connection->hinted_since_ns = now;
      if (connection->unreachable_hints < 255) ++connection->unreachable_hints;
    }
  }
}

}  // namespace lintel

// Going to sleep, closing, looking after queue pairs that nobody uses. Path
// into sleep.
#include <algorithm>
#include <mutex>

#include "util/clock.h"
#include "util/log.h"
#include "verbs/verbs_transport.h"

namespace lintel {

namespace {

constexpr uint64_t idle_look_ns = 250'000'000;
// A queue pair unused for this long may be given up for another peer.
constexpr uint64_t idle_enough_ns = 100'000'000;
constexpr int64_t stopping_look_ns = 1'000'000;

}  // namespace

// The layer below takes all events of the device first; then a completion that comes is a new one.
bool VerbsTransport::arm(bool blocked_senders) noexcept {
  if (!datagrams_->arm(blocked_senders)) return false;
  if (completions_ == nullptr) return true;
  give_up_idle();
  if (!device_->events.arm(completions_) || early_count_ != 0) return false;
  const int got = ibv_poll_cq(completions_, completion_burst, early_);
  if (got > 0) early_count_ = static_cast<unsigned>(got);
  return early_count_ == 0 && !requests_.is_pending(std::memory_order_seq_cst);
}

int64_t VerbsTransport::sleep_limit_ns() noexcept {
  int64_t limit_ns = datagrams_->sleep_limit_ns();
  const auto at_most = [&](int64_t wish_ns) {
    if (limit_ns < 0 || wish_ns < limit_ns) limit_ns = wish_ns;
  };
  if (!listed_.empty()) at_most(stopping_look_ns);
  if (channel_count_ != 0 && settings_.idle_ns != 0)
    at_most(static_cast<int64_t>(settings_.idle_ns));
  return limit_ns;
}

// A queue pair whose last messages ask for no completion is sent one that does: its completion says that
// all have arrived.
bool VerbsTransport::all_delivered() noexcept {
  bool delivered = datagrams_->all_delivered();
  for (Place& place : channels_) {
    if (place.channel == nullptr || place.link->path != Path::queue_pair) continue;
    VerbsLink& link = *place.link;
    const std::lock_guard guard(link.lock);
    if (place.channel->queue.is_empty()) continue;
    delivered = false;
    sender_.request_completion(link);
  }
  return delivered && listed_.empty();
}

void VerbsTransport::give_up_idle() noexcept {
  const uint64_t now = now_ns();
  if (now < next_idle_look_ns_) return;
  next_idle_look_ns_ = now + std::min(idle_look_ns, settings_.idle_ns / 2 + 1);
  for (Place& place : channels_) {
    if (place.channel == nullptr || !place.channel->connected || place.channel->stopping) continue;
    Channel& channel = *place.channel;
    bool busy;
    uint64_t messages;
    {
      const std::lock_guard guard(place.link->lock);
      messages = channel.messages_posted + channel.messages_received;
      busy = place.link->path == Path::changing || channel.has_memory_in_use() ||
             messages != channel.messages_at_last_look;
    }
    if (busy || channel.idle_since_ns == 0) {
      channel.messages_at_last_look = messages;
      channel.idle_since_ns = now;
    } else if (settings_.idle_ns != 0 &&
               elapsed_ns(channel.idle_since_ns, now) > settings_.idle_ns) {
      stop_channel(*place.link, "nobody used it for PTL_VERBS_RC_IDLE_MS");
    }
  }
}

// For a peer that has none while there are as many as there may be.
bool VerbsTransport::give_up_idle_channel() noexcept {
  const uint64_t now = now_ns();
  Place* longest = nullptr;
  for (Place& place : channels_) {
    if (place.channel == nullptr || !place.channel->connected || place.channel->stopping) continue;
    Channel& channel = *place.channel;
    const std::lock_guard guard(place.link->lock);
    if (channel.idle_since_ns == 0 || elapsed_ns(channel.idle_since_ns, now) < idle_enough_ns ||
        channel.messages_posted + channel.messages_received != channel.messages_at_last_look ||
        channel.has_memory_in_use())
      continue;
    if (longest == nullptr || channel.idle_since_ns < longest->channel->idle_since_ns)
      longest = &place;
  }
  if (longest == nullptr) return false;
  stop_channel(*longest->link, "another peer needs one (PTL_VERBS_MAX_RC)");
  return true;
}

void VerbsTransport::check_peers(MessageSink& sink, Link* const* watch, unsigned count) noexcept {
  constexpr unsigned most = 64;
  Link* below[most];
  sink_ = &sink;
  give_up_idle();
  for (unsigned done = 0;;) {
    const unsigned now = std::min(count - done, most);
    for (unsigned i = 0; i < now; ++i)
      below[i] = static_cast<VerbsLink*>(watch[done + i])->datagrams;
    datagrams_->check_peers(static_cast<MessageSink&>(*this), below, now);
    done += now;
    if (done >= count) break;
  }
  sink_ = nullptr;
}

}  // namespace lintel

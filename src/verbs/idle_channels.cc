#include "verbs/idle_channels.h"

#include <algorithm>
#include <mutex>

#include "util/clock.h"

namespace lintel {

namespace {

constexpr uint64_t look_interval_ns = 250'000'000;
// A queue pair that is unused for so long may be given up for another peer.
constexpr uint64_t idle_enough_ns = 100'000'000;

}  // namespace

void IdleChannels::look() noexcept {
  const uint64_t now = now_ns();
  if (now < next_look_ns_) return;
  next_look_ns_ = now + std::min(look_interval_ns, idle_ns_ / 2 + 1);
  channels_.for_each([&](VerbsLink& link, Channel& channel) {
    if (!channel.connected || channel.stopping) return;
    bool busy;
    uint64_t messages;
    {
      const std::lock_guard guard(link.lock);
      messages = channel.messages_posted + channel.messages_received;
      busy = link.path == Path::changing || channel.has_memory_in_use() ||
             messages != channel.messages_at_last_look;
    }
    if (busy || channel.idle_since_ns == 0) {
      channel.messages_at_last_look = messages;
      channel.idle_since_ns = now;
    } else if (idle_ns_ != 0 && elapsed_ns(channel.idle_since_ns, now) > idle_ns_) {
      channels_.stop(link, "nobody used it for PTL_VERBS_RC_IDLE_MS");
    }
  });
}

bool IdleChannels::stop_longest_idle() noexcept {
  const uint64_t now = now_ns();
  VerbsLink* longest = nullptr;
  channels_.for_each([&](VerbsLink& link, Channel& channel) {
    if (!channel.connected || channel.stopping) return;
    const std::lock_guard guard(link.lock);
    if (channel.idle_since_ns == 0 || elapsed_ns(channel.idle_since_ns, now) < idle_enough_ns ||
        channel.messages_posted + channel.messages_received != channel.messages_at_last_look ||
        channel.has_memory_in_use())
      return;
    if (longest == nullptr || channel.idle_since_ns < longest->channel->idle_since_ns)
      longest = &link;
  });
  if (longest == nullptr) return false;
  channels_.stop(*longest, "another peer needs one (PTL_VERBS_MAX_RC)");
  return true;
}

}  // namespace lintel

#include "verbs/channels.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "util/clock.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

bool CompletionQueue::open(uint32_t receives, uint32_t sends, std::string& reason) {
  receives_ = receives;
  sends_ = sends;
  queue_ = ibv_create_cq(device_.context, static_cast<int>(entries()), nullptr,
                         device_.events.channel(), 0);
  if (queue_ != nullptr) return true;
  reason = std::string("a completion queue cannot be made: ").append(std::strerror(errno));
  return false;
}

CompletionQueue::~CompletionQueue() {
  if (queue_ == nullptr) return;
  // A queue whose events have not been taken cannot be destroyed.
  device_.events.drain();
  ibv_destroy_cq(queue_);
}

bool CompletionQueue::reserve(uint32_t queue_pairs) noexcept {
  if (queue_pairs <= queue_pairs_) return true;
  const uint64_t wanted = receives_ + uint64_t{queue_pairs_} * 2 * sends_;
  if (wanted > static_cast<uint64_t>(device_.attributes.max_cqe) ||
      ibv_resize_cq(queue_, static_cast<int>(wanted)) != 0) {
    static std::atomic<bool> said{false};
    log_once(said, LogLevel::warn,
             "verbs: the completion queue cannot serve more than %u queue pairs; other peers are "
             "served by datagrams",
             queue_pairs_);
    return false;
  }
  queue_pairs_ *= 2;
  return true;
}

unsigned CompletionQueue::take(ibv_wc* completions) noexcept {
  if (early_count_ != 0) [[unlikely]] {
    std::copy_n(early_, early_count_, completions);
    return std::exchange(early_count_, 0u);
  }
  const int got = ibv_poll_cq(queue_, burst, completions);
  return got <= 0 ? 0 : static_cast<unsigned>(got);
}

bool CompletionQueue::arm() noexcept {
  if (!device_.events.arm(queue_) || early_count_ != 0) return false;
  // A completion that came before arming makes nothing readable.
  early_count_ = take(early_);
  return early_count_ == 0;
}

Channel* Channels::make(VerbsLink& link, const QueuePairSizes& sizes) noexcept {
  // Another port goes on; to connect this one would wait for an address.
  if (device_.is_one_of_several && !device_.async_events.port_is_up()) return nullptr;
  if (!completions_.reserve(count_ + 1)) return nullptr;
  try {
    std::string reason;
    auto made = std::make_unique<Channel>();
    made->queue_pair =
        QueuePair::create(device_, completions_.get(), receives_.queue(), sizes, reason);
    if (made->queue_pair == nullptr) {
      log_message(LogLevel::warn, "verbs: %s; %s is served by datagrams", reason.c_str(),
                  ProcessText(link.peer.nid, link.peer.pid).c_str());
      return nullptr;
    }
    auto place = std::find_if(places_.begin(), places_.end(),
                              [](const Place& p) { return p.channel == nullptr; });
    if (place == places_.end()) place = places_.insert(places_.end(), Place{});
    Channel& channel = *made;
    channel.index = static_cast<uint32_t>(place - places_.begin());
    channel.number = channel.queue_pair->number();
    *place = {std::move(made), &link};
    ++count_;
    const LockGuard guard(link.lock);
    channel.queue.open(link, requests_, channel.queue_pair->get(), channel.index);
    link.channel = &channel;
    return &channel;
  } catch (...) {
    log_message(LogLevel::error, "verbs: no memory for a queue pair");
    return nullptr;
  }
}

void Channels::remove(VerbsLink& link) noexcept {
  const uint32_t index = link.channel->index;
  {
    const LockGuard guard(link.lock);
    link.path = Path::datagrams;
    link.channel = nullptr;
  }
  places_[index] = {};
  --count_;
}

// The software device destroys a queue pair when its packets have gone. They wait for the address
// of a peer for 3 s if the port is down.
void Channels::release(std::unique_ptr<QueuePair> queue_pair) noexcept {
  if (device_.attributes.vendor_id != vendor_of_rxe || !queue_pair->reset()) return;
  try {
    released_.push_back({std::move(queue_pair), now_ns()});
  } catch (...) {  // no memory: it is destroyed now
  }
}

void Channels::destroy_released() noexcept {
  constexpr uint64_t longest_wait_ns = 5'000'000'000;
  const uint64_t now = now_ns();
  std::erase_if(released_, [&](const Released& released) {
    return elapsed_ns(released.since_ns, now) > longest_wait_ns;
  });
}

void Channels::stop(VerbsLink& link, const char* why) noexcept {
  Channel* const channel = link.channel;
  if (channel == nullptr || channel->stop.begun || !channel->connected) return;
  channel->stop.begun = true;
  channel->stop.reason = why;
  channel->stop.since_ns = now_ns();
  {
    const LockGuard guard(link.lock);
    link.path = Path::stopping;
    channel->queue.flush();
  }
  channel->queue_pair->stop();
  link.pending &= static_cast<uint8_t>(~VerbsLink::pending_change);
  stopped_.increment();
  log_message(LogLevel::info, "verbs: the queue pair with %s stops: %s",
              ProcessText(link.peer.nid, link.peer.pid).c_str(), why);
  unfinished_.add(link);
}

Channels::Place* Channels::find(uint32_t number) noexcept {
  for (Place& place : places_)
    if (place.channel != nullptr && place.channel->number == number) return &place;
  return nullptr;
}

namespace {

constexpr uint64_t look_interval_ns = 250'000'000;
// A queue pair that is unused for so long may be given up for another peer.
constexpr uint64_t idle_enough_ns = 100'000'000;

}  // namespace

void IdleChannels::look() noexcept {
  const uint64_t now = now_ns();
  if (now < next_look_ns_) return;
  next_look_ns_ = now + std::min(look_interval_ns, idle_ns_ / 2 + 1);
  channels_.destroy_released();
  channels_.for_each([&](VerbsLink& link, Channel& channel) {
    if (!channel.connected || channel.stop.begun) return;
    bool busy;
    uint64_t messages;
    {
      const LockGuard guard(link.lock);
      messages = channel.message_count();
      busy = link.path == Path::changing || channel.has_memory_in_use() ||
             messages != channel.last_use.messages;
    }
    if (busy || channel.last_use.idle_since_ns == 0) {
      channel.last_use.messages = messages;
      channel.last_use.idle_since_ns = now;
    } else if (idle_ns_ != 0 && elapsed_ns(channel.last_use.idle_since_ns, now) > idle_ns_) {
      channels_.stop(link, "it was not used for a while");
    }
  });
}

bool IdleChannels::stop_longest_idle() noexcept {
  const uint64_t now = now_ns();
  VerbsLink* longest = nullptr;
  channels_.for_each([&](VerbsLink& link, Channel& channel) {
    if (!channel.connected || channel.stop.begun) return;
    const LockGuard guard(link.lock);
    if (channel.last_use.idle_since_ns == 0 ||
        elapsed_ns(channel.last_use.idle_since_ns, now) < idle_enough_ns ||
        channel.message_count() != channel.last_use.messages || channel.has_memory_in_use())
      return;
    if (longest == nullptr ||
        channel.last_use.idle_since_ns < longest->channel->last_use.idle_since_ns)
      longest = &link;
  });
  if (longest == nullptr) return false;
  channels_.stop(*longest, "another peer needs one (PTL_VERBS_MAX_RC)");
  return true;
}

}  // namespace lintel

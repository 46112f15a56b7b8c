#include "verbs/verbs_transport.h"

#include <algorithm>

#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"
#include "util/text.h"

namespace lintel {

namespace {

// Length of a small message, which is sent inline if the device can: header and payload in two
// cache lines.
constexpr uint32_t small_bytes = sizeof(MessageHeader) + 80;
// Memory of this process for a connected peer: state, and slots that wait for its next messages.
constexpr size_t bytes_of_peer = sizeof(VerbsLink) + sizeof(Connection) + sizeof(Channel) +
                                 sizeof(QueuePair) + SpareSlots::capacity * small_bytes;
static_assert(bytes_of_peer <= 8192);
constexpr int64_t unfinished_look_ns = 1'000'000;
constexpr int64_t freed_look_ns = 250'000'000;  // at memory of accelerators

VerbsLink& link_of(Link& datagrams) noexcept {
  return *static_cast<VerbsLink*>(
      std::atomic_ref<void*>(datagrams.context).load(std::memory_order_acquire));
}

}  // namespace

std::unique_ptr<VerbsTransport> VerbsTransport::open(std::shared_ptr<VerbsDevice> device,
                                                     std::unique_ptr<Transport> datagrams,
                                                     const ConnectedSettings& settings,
                                                     std::string& reason) {
  std::unique_ptr<VerbsTransport> transport(
      new VerbsTransport(std::move(device), std::move(datagrams), settings));
  if (!transport->open_queues(reason)) return nullptr;
  return transport;
}

VerbsTransport::VerbsTransport(std::shared_ptr<VerbsDevice> device,
                               std::unique_ptr<Transport> datagrams,
                               const ConnectedSettings& settings)
    : device_(std::move(device)),
      settings_(settings),
      capabilities_{"verbs", settings.eager_bytes, false, true, settings.eager_bytes},
      datagrams_(std::move(datagrams)),
      memory_(*device_),
      links_(settings.eager_bytes),
      requests_(settings.max_rc != 0),
      accesses_(*device_, memory_),
      exposures_(*device_, memory_, requests_),
      queue_(*device_),
      channels_(*device_, queue_, receives_, requests_, unfinished_, settings.max_rc),
      arrivals_(receives_, channels_, exposures_, settings.eager_bytes),
      completions_(queue_, channels_, arrivals_, sender_, accesses_, exposures_),
      change_({*datagrams_, channels_, unfinished_, completions_, arrivals_, sender_},
              {SendQueue::capacity, small_bytes, accesses_.pieces_of_request()},
              settings.eager_bytes, settings.max_rc != 0, settings.rc_idle_ns) {}

bool VerbsTransport::open_queues(std::string& reason) {
  const uint32_t large = sizeof(MessageHeader) + settings_.eager_bytes;
  if (!accesses_.open() || !exposures_.open())
    return explained(false, reason, "no address space for its pools (ulimit -v?)");
  if (settings_.max_rc == 0) return true;
  if (!sender_.open(device_->pd, small_bytes, large, reason) ||
      !receives_.open(*device_, settings_.receive_buffers, large, Arrivals::tag, reason) ||
      !queue_.open(receives_.count(), SendQueue::capacity, reason))
    return false;
  arrivals_.open();
  memory_.open(settings_.registration_cache);
  capabilities_.remote_access = capabilities_.accesses_accelerators = memory_.is_open();
  requests_.watch(queue_.get(), receives_.queue());
  device_->async_events.add(requests_);
  return true;
}

VerbsTransport::~VerbsTransport() {
  device_->async_events.remove(requests_);
  channels_.for_each([&](VerbsLink& link, Channel& channel) {
    if (channel.queue_pair == nullptr) return;
    channel.queue_pair->stop();
    completions_.release(link, RemoteStatus::peer_failed);
  });
}

Link* VerbsTransport::connect(ProcessId peer, std::string* reason) {
  Link* const datagrams = datagrams_->connect(peer, reason);
  if (datagrams == nullptr) return nullptr;
  VerbsLink& link = links_.find(peer);
  {
    const LockGuard guard(link.lock);
    link.datagrams = datagrams;
  }
  std::atomic_ref<void*>(datagrams->context).store(&link, std::memory_order_release);
  return &link;
}

SendStatus VerbsTransport::send(Link& base, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept {
  auto& link = static_cast<VerbsLink&>(base);
  const LockGuard guard(link.lock);
  // A put with PTL_MD_UNRELIABLE is sent as a datagram, which may be lost.
  const bool unreliable = (header.flags & flag_unreliable) != 0 && header.kind == MessageKind::put;
  if (link.path == Path::queue_pair && !unreliable) [[likely]]
    return sender_.send(link, header, pieces, count);
  if (link.path == Path::datagrams || unreliable) {
    if (!unreliable) requests_.request_channel(link);
    const SendStatus status = datagrams_->send(*link.datagrams, header, pieces, count);
    follow_path(link);
    return status;
  }
  return SendStatus::connecting;
}

uint64_t VerbsTransport::incarnation(Link& base) const noexcept {
  auto& link = static_cast<VerbsLink&>(base);
  const LockGuard guard(link.lock);
  return datagrams_->incarnation(*link.datagrams);
}

// Follows the length limit of datagrams, which may change with the path.
void VerbsTransport::follow_path(VerbsLink& link) const noexcept {
  const uint32_t bytes = link.datagrams->max_data_bytes.load(std::memory_order_relaxed);
  link.max_data_bytes.store(std::min(bytes, settings_.eager_bytes), std::memory_order_relaxed);
}

void VerbsTransport::end_access(Link& base, const RemoteMemory* remote, unsigned count) noexcept {
  auto& link = static_cast<VerbsLink&>(base);
  if (!memory_.has_windows()) return;
  const LockGuard guard(link.lock);
  sender_.invalidate_windows(link, remote, count);
}

// The handshake of the peer is complete.
void* VerbsTransport::on_new_link(Link& datagrams) noexcept {
  VerbsLink* link = nullptr;
  try {
    link = &links_.find(datagrams.peer);
  } catch (...) {
    log_message(LogLevel::error, "verbs: no memory to connect to %s",
                ProcessText(datagrams.peer.nid, datagrams.peer.pid).c_str());
    return nullptr;
  }
  {
    const LockGuard guard(link->lock);
    link->datagrams = &datagrams;
    link->uid = datagrams.uid;
    follow_path(*link);
    link->messages_until_request = 0;
  }
  link->failures = 0;
  std::atomic_ref<void*>(datagrams.context).store(link, std::memory_order_release);
  void* const context = sink_->on_new_link(*link);
  std::atomic_ref<void*> stored(link->context);
  if (stored.load(std::memory_order_acquire) != context)
    stored.store(context, std::memory_order_release);
  return link;
}

void VerbsTransport::on_messages(Link& datagrams, const InboundMessage* messages,
                                 unsigned count) noexcept {
  if (datagrams.context == nullptr) return;  // no memory for it
  VerbsLink& link = link_of(datagrams);
  unsigned first = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (messages[i].header.kind != MessageKind::connection) [[likely]]
      continue;
    if (i != first) sink_->on_messages(link, messages + first, i - first);
    change_.handle(link, messages[i], *sink_);
    first = i + 1;
  }
  if (count != first) sink_->on_messages(link, messages + first, count - first);
}

void VerbsTransport::on_peer_failed(Link& datagrams) noexcept {
  if (datagrams.context == nullptr) return;
  VerbsLink& link = link_of(datagrams);
  link.failure = datagrams.failure;
  change_.fail(link, *sink_);
}

unsigned VerbsTransport::poll(MessageSink& sink, unsigned budget) noexcept {
  sink_ = &sink;
  unsigned handled = queue_.get() != nullptr ? completions_.poll(sink, budget) : 0;
  // While messages travel over queue pairs, datagrams are rare, and a poll for them doubles the
  // cost of a poll.
  constexpr uint32_t empty_polls_before_rare = 64;
  constexpr uint32_t polls_between_rare = 8;
  if (empty_datagram_polls_ < empty_polls_before_rare || channels_.count() == 0 ||
      polls_ % polls_between_rare == 0) {
    const unsigned datagrams = datagrams_->poll(static_cast<MessageSink&>(*this), budget);
    empty_datagram_polls_ = datagrams == 0 ? empty_datagram_polls_ + 1 : 0;
    handled += datagrams;
  }
  if (requests_.is_pending(std::memory_order_relaxed)) [[unlikely]] {
    change_.stop_broken(requests_.take());
    links_.for_each([&](VerbsLink& link) { change_.grant(link); });
  }
  if (!unfinished_.is_empty()) [[unlikely]]
    unfinished_.serve([&](VerbsLink& link) {
      polling.assert_held();
      return change_.serve(link, sink);
    });
  constexpr uint32_t polls_between_idle_looks = 8192;
  if (++polls_ >= polls_between_idle_looks) [[unlikely]] {
    polls_ = 0;
    change_.stop_idle();
    memory_.end_freed();
  }
  sink_ = nullptr;
  return handled;
}

// The layer below takes all events of the device first; then a completion that comes is a new one.
bool VerbsTransport::arm(bool blocked_senders) noexcept {
  if (!datagrams_->arm(blocked_senders)) return false;
  if (queue_.get() == nullptr) return true;
  change_.stop_idle();
  return queue_.arm() && !requests_.is_pending(std::memory_order_seq_cst);
}

int64_t VerbsTransport::sleep_limit_ns() noexcept {
  int64_t limit_ns = datagrams_->sleep_limit_ns();
  const auto at_most = [&](int64_t wish_ns) {
    if (limit_ns < 0 || wish_ns < limit_ns) limit_ns = wish_ns;
  };
  if (!unfinished_.is_empty()) at_most(unfinished_look_ns);
  if (memory_.end_freed()) at_most(freed_look_ns);
  if (channels_.count() != 0 && settings_.rc_idle_ns != 0)
    at_most(static_cast<int64_t>(settings_.rc_idle_ns));
  return limit_ns;
}

// If the last messages over a queue pair have no completion, one more with a completion is sent: it
// shows that all have arrived.
bool VerbsTransport::all_delivered() noexcept {
  bool delivered = datagrams_->all_delivered();
  channels_.for_each([&](VerbsLink& link, Channel& channel) {
    const LockGuard guard(link.lock);
    if (link.path != Path::queue_pair || channel.queue.is_empty()) return;
    delivered = false;
    sender_.request_completion(link);
  });
  return delivered && unfinished_.is_empty();
}

void VerbsTransport::check_peers(MessageSink& sink, Link* const* watch, unsigned count) noexcept {
  constexpr unsigned most = 64;
  Link* below[most];
  sink_ = &sink;
  change_.stop_idle();
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

std::vector<Statistic> VerbsTransport::statistics() const {
  std::vector<Statistic> all = datagrams_->statistics();
  const Statistic own[] = {{"queue pair messages sent", sender_.sent()},
                           {"queue pair messages received", arrivals_.received()},
                           {"remote accesses", accesses_.started()},
                           {"remote access bytes", accesses_.bytes()},
                           {"exposures", exposures_.exposed()},
                           {"registered without being pinned", memory_.on_demand_count()},
                           {"memory of accelerators registered", memory_.accelerator_count()},
                           {"refused", arrivals_.refused() + change_.refused()},
                           {"queue pairs", change_.connected()},
                           {"queue pairs stopped", channels_.stopped()},
                           {"messages sent again", sender_.sent_again()},
                           {"queue pairs declined", change_.declined()},
                           {"device events", requests_.events()}};
  all.insert(all.end(), std::begin(own), std::end(own));
  return all;
}

std::string VerbsTransport::describe() const {
  if (settings_.max_rc == 0)
    return text_of(datagrams_->describe(), "; no queue pairs (PTL_VERBS_MAX_RC=0)");
  const char* const by = !memory_.is_open() ? ": no, there is no registration cache"
                         : memory_.has_windows()
                             ? " through memory windows"
                             : ", registered one by one (the device has no memory windows of type "
                               "2 that can be relied on)";
  return text_of(datagrams_->describe(), "; at most ", settings_.max_rc,
                 " RC queue pairs, messages to ", settings_.eager_bytes,
                 " bytes, longer ones by RDMA read and write", by,
                 memory_.is_open() && device_->has_on_demand_paging
                     ? "; what cannot be locked is paged on demand"
                     : "");
}

}  // namespace lintel

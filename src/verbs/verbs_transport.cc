#include "verbs/verbs_transport.h"

#include <algorithm>

#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"
#include "util/text.h"

namespace lintel {

namespace {

constexpr int64_t unfinished_look_ns = 1'000'000;
constexpr int64_t freed_look_ns = 250'000'000;  // at memory of accelerators

VerbsLink& link_of(Link& datagrams) noexcept {
  return *static_cast<VerbsLink*>(
      std::atomic_ref<void*>(datagrams.context).load(std::memory_order_acquire));
}

}  // namespace

std::unique_ptr<VerbsTransport> VerbsTransport::open(const VerbsDevices& devices,
                                                     std::unique_ptr<Transport> datagrams,
                                                     const VerbsSettings& settings,
                                                     std::string& reason) {
  std::unique_ptr<VerbsTransport> transport(
      new VerbsTransport(devices, std::move(datagrams), settings));
  if (!transport->open_queues(reason)) return nullptr;
  return transport;
}

VerbsTransport::VerbsTransport(const VerbsDevices& devices, std::unique_ptr<Transport> datagrams,
                               const VerbsSettings& settings)
    : capabilities_{"verbs", settings.eager_bytes, false, true, settings.eager_bytes},
      datagrams_(std::move(datagrams)),
      links_(settings.eager_bytes),
      first_(devices[0], *datagrams_, settings) {
  if (devices.size() == 1 || settings.max_rc == 0 || settings.registration_cache == nullptr) return;
  striped_ = std::make_unique<StripedAccesses>(VerbsDevices{devices.begin() + 1, devices.end()},
                                               *datagrams_, first_, settings);
  first_.change.set_rails(*striped_);
}

bool VerbsTransport::open_queues(std::string& reason) {
  if (!first_.open(reason)) return false;
  if (striped_ != nullptr && !striped_->open())
    return explained(false, reason, "no address space for accesses to memory (ulimit -v?)");
  capabilities_.remote_access = capabilities_.accesses_accelerators = first_.memory.is_open();
  return true;
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
    return first_.sender.send(link, header, pieces, count);
  if (link.path == Path::datagrams || unreliable) {
    if (!unreliable) first_.requests.request_channel(link);
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
  link.max_data_bytes.store(std::min(bytes, first_.settings.eager_bytes),
                            std::memory_order_relaxed);
}

void VerbsTransport::end_access(Link& base, const RemoteMemory* remote, unsigned count) noexcept {
  auto& link = static_cast<VerbsLink&>(base);
  if (!first_.memory.has_windows()) return;
  const LockGuard guard(link.lock);
  first_.sender.invalidate_windows(link, remote, count);
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
    if (striped_ == nullptr || !striped_->rails().handle(link, messages[i]))
      first_.change.handle(link, messages[i], *sink_);
    first = i + 1;
  }
  if (count != first) sink_->on_messages(link, messages + first, count - first);
}

void VerbsTransport::on_peer_failed(Link& datagrams) noexcept {
  if (datagrams.context == nullptr) return;
  VerbsLink& link = link_of(datagrams);
  link.failure = datagrams.failure;
  first_.change.fail(link, *sink_);
}

unsigned VerbsTransport::poll(MessageSink& sink, unsigned budget) noexcept {
  sink_ = &sink;
  unsigned handled = striped_ != nullptr ? poll_further(sink, budget) : 0;
  if (first_.is_open()) handled += first_.completions.poll(sink, budget);
  // While messages travel over queue pairs, datagrams are rare, and a poll for them doubles the
  // cost of a poll.
  constexpr uint32_t empty_polls_before_rare = 64;
  constexpr uint32_t polls_between_rare = 8;
  if (empty_datagram_polls_ < empty_polls_before_rare || first_.channels.count() == 0 ||
      polls_ % polls_between_rare == 0) {
    const unsigned datagrams = datagrams_->poll(static_cast<MessageSink&>(*this), budget);
    empty_datagram_polls_ = datagrams == 0 ? empty_datagram_polls_ + 1 : 0;
    handled += datagrams;
  }
  first_.serve(sink, [&](const auto& visit) {
    links_.for_each([&](VerbsLink& link) {
      visit(link);
      if (striped_ != nullptr) striped_->rails().grant(link);
    });
  });
  constexpr uint32_t polls_between_idle_looks = 8192;
  if (++polls_ >= polls_between_idle_looks) [[unlikely]] {
    polls_ = 0;
    stop_idle();
    first_.memory.end_freed();
  }
  sink_ = nullptr;
  return handled;
}

// Before the first port, whose messages tell of memory: the keys for further ports are there then.
unsigned VerbsTransport::poll_further(MessageSink& sink, unsigned budget) noexcept {
  striped_->set_sink(&sink);
  const unsigned handled = striped_->rails().poll(budget);
  striped_->serve();
  return handled;
}

void VerbsTransport::stop_idle() noexcept {
  first_.change.stop_idle();
  if (striped_ != nullptr) striped_->rails().stop_idle();
}

// The layer below takes all events of the device first; then a completion that comes is a new one.
bool VerbsTransport::arm(bool blocked_senders) noexcept {
  if (!datagrams_->arm(blocked_senders)) return false;
  if (!first_.is_open()) return true;
  stop_idle();
  return first_.arm() && (striped_ == nullptr || striped_->rails().arm());
}

int64_t VerbsTransport::sleep_limit_ns() noexcept {
  int64_t limit_ns = datagrams_->sleep_limit_ns();
  const auto at_most = [&](int64_t wish_ns) {
    if (limit_ns < 0 || wish_ns < limit_ns) limit_ns = wish_ns;
  };
  if (!first_.unfinished.is_empty() ||
      (striped_ != nullptr && (striped_->has_waiting() || striped_->rails().has_unfinished())))
    at_most(unfinished_look_ns);
  if (first_.memory.end_freed()) at_most(freed_look_ns);
  if (first_.channels.count() != 0 && first_.settings.rc_idle_ns != 0)
    at_most(static_cast<int64_t>(first_.settings.rc_idle_ns));
  return limit_ns;
}

// If the last messages over a queue pair have no completion, one more with a completion is sent: it
// shows that all have arrived.
bool VerbsTransport::all_delivered() noexcept {
  bool delivered = datagrams_->all_delivered();
  first_.channels.for_each([&](VerbsLink& link, Channel& channel) {
    const LockGuard guard(link.lock);
    if (link.path != Path::queue_pair || channel.queue.is_empty()) return;
    delivered = false;
    first_.sender.request_completion(link);
  });
  return delivered && first_.unfinished.is_empty();
}

void VerbsTransport::check_peers(MessageSink& sink, Link* const* watch, unsigned count) noexcept {
  constexpr unsigned most = 64;
  Link* below[most];
  sink_ = &sink;
  if (striped_ != nullptr) striped_->set_sink(&sink);
  stop_idle();
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
  const Statistic own[] = {{"queue pair messages sent", first_.sender.sent()},
                           {"queue pair messages received", first_.arrivals.received()},
                           {"remote accesses", first_.accesses.started()},
                           {"remote access bytes", first_.accesses.bytes()},
                           {"exposures", first_.exposures.exposed()},
                           {"registered without being pinned", first_.memory.on_demand_count()},
                           {"memory of accelerators registered", first_.memory.accelerator_count()},
                           {"refused", first_.arrivals.refused() + first_.change.refused()},
                           {"queue pairs", first_.change.connected()},
                           {"queue pairs stopped", first_.channels.stopped()},
                           {"messages sent again", first_.sender.sent_again()},
                           {"queue pairs declined", first_.change.declined()},
                           {"device events", first_.requests.events()}};
  all.insert(all.end(), std::begin(own), std::end(own));
  if (striped_ == nullptr) return all;
  static constexpr const char* by_rail[] = {"remote access bytes by rail 1",
                                            "remote access bytes by rail 2",
                                            "remote access bytes by rail 3"};
  static_assert(std::size(by_rail) == most_rails - 1);
  for (unsigned i = 0; i < striped_->rails().port_count(); ++i)
    all.push_back({by_rail[i], striped_->rails().port(i).accesses.bytes()});
  all.push_back({"chunks repeated", striped_->repeated()});
  return all;
}

std::string VerbsTransport::describe() const {
  if (first_.settings.max_rc == 0)
    return text_of(datagrams_->describe(), "; no queue pairs (PTL_VERBS_MAX_RC=0)");
  const char* const by = !first_.memory.is_open() ? ": no, there is no registration cache"
                         : first_.memory.has_windows()
                             ? " through memory windows"
                             : ", registered one by one (the device has no memory windows of type "
                               "2 that can be relied on)";
  return text_of(datagrams_->describe(), "; at most ", first_.settings.max_rc,
                 " RC queue pairs, messages to ", first_.settings.eager_bytes,
                 " bytes, longer ones by RDMA read and write", by,
                 first_.memory.is_open() && first_.device->has_on_demand_paging
                     ? "; what cannot be locked is paged on demand"
                     : "");
}

}  // namespace lintel

#include "core/operations/peer_directory.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "transport/process_key.h"
#include "util/awaited_process.h"
#include "util/clock.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"
#include "util/text.h"
#include "util/without_cancellation.h"

namespace lintel {

namespace {
constexpr uint32_t largest_peers = 1u << 20;
constexpr uint64_t first_capacity = 64;
constexpr uint32_t most_awaited_put_rings = 1u << 12;  // peers with awaited puts
constexpr size_t most_reasons = 256;
constexpr uint64_t gone_said_again_ns = 10'000'000'000;

// Returns the format of a log line. Its arguments are process, transport and reason.
constexpr const char* failure_format(Link::Failure::Kind kind) noexcept {
  switch (kind) {
    case Link::Failure::Kind::unanswered:
      return "nobody answers at %s (%s: %s): operations to it end as PTL_NI_UNDELIVERABLE";
    case Link::Failure::Kind::refused:
      return "%s refuses to connect (%s: %s): operations to it end as PTL_NI_UNDELIVERABLE";
    case Link::Failure::Kind::gone:
      break;
  }
  return "%s is gone (%s: %s): operations to it end as PTL_NI_UNDELIVERABLE";
}
}  // namespace

bool PeerTable::open() noexcept {
  try {
    generations_.push_back(std::make_unique<Slots>(first_capacity));
  } catch (...) {
    return false;
  }
  slots_.store(generations_.back().get(), std::memory_order_release);
  return peers_.open(largest_peers);
}

void PeerTable::place(Slots& slots, Peer& peer) noexcept {
  uint64_t i = hash(peer.id);
  while (slots.at[i & slots.mask].load(std::memory_order_relaxed) != nullptr) ++i;
  slots.at[i & slots.mask].store(&peer, std::memory_order_release);
}

Peer* PeerTable::insert(ProcessId id) noexcept {
  Slots* slots = slots_.load(std::memory_order_relaxed);
  if (uint64_t{peers_.high_water()} * 2 > slots->mask) {
    try {
      generations_.push_back(std::make_unique<Slots>((slots->mask + 1) * 4));
    } catch (...) {
      return nullptr;
    }
    slots = generations_.back().get();
    for (Peer& peer : all()) place(*slots, peer);
    slots_.store(slots, std::memory_order_release);
  }
  const uint32_t index = peers_.allocate();
  if (index == Arena<Peer>::no_index) return nullptr;
  Peer& peer = peers_.at(index);
  peer.id = id;
  place(*slots, peer);
  return &peer;
}

LinkRelation relation_of(const Peer& peer, Transport& transport, Link& link) noexcept {
  if (peer.route.link == &link) return LinkRelation::sends;
  const uint64_t known = peer.route.transport->incarnation(*peer.route.link);
  if (known != 0)
    return known == transport.incarnation(link) ? LinkRelation::receives
                                                : LinkRelation::of_another_process;
  // Queued payloads may be as long as the other transport allows.
  return transport.capabilities().max_eager_bytes >=
                 peer.route.transport->capabilities().max_eager_bytes
             ? LinkRelation::replaces
             : LinkRelation::receives;
}

bool PeerDirectory::open(Transports transports, std::span<const OpenedTransports::Unused> unused,
                         PollFlag& in_process_sends) noexcept {
  transports_ = transports;
  unused_ = unused;
  in_process_sends_ = &in_process_sends;
  return table_.open() && awaited_put_rings_.open(most_awaited_put_rings);
}

const std::string& PeerDirectory::reason_for(size_t chosen,
                                             const std::vector<std::string>& answers) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& reason) {
    text.append(text.empty() ? "" : "; ").append(name).append(": ").append(reason);
  };
  for (size_t i = 0; i <= transports_.size() && i <= chosen; ++i) {
    for (const OpenedTransports::Unused& unused : unused_)
      if (unused.place == i) add(unused.transport, unused.reason);
    if (i == chosen || i == transports_.size()) break;
    const Capabilities& capabilities = transports_[i]->capabilities();
    if (capabilities.in_process && chosen < transports_.size()) continue;
    if (i < answers.size() && !answers[i].empty()) add(capabilities.name, answers[i]);
  }
  static const std::string none;
  if (reasons_.size() >= most_reasons && reasons_.count(text) == 0) return none;
  return *reasons_.insert(std::move(text)).first;
}

Peer* PeerDirectory::connect(ProcessId id) noexcept {
  const WithoutCancellation scope;
  const LockGuard guard(mutex_);
  Peer* peer = table_.find(id);
  if (peer != nullptr && !peer->failed.load(std::memory_order_relaxed)) return peer;
  try {
    std::vector<std::string> answers;
    for (const std::unique_ptr<Transport>& transport : transports_) {
      Link* link = transport->connect(id, &answers.emplace_back());
      if (link == nullptr) continue;
      if (peer == nullptr) peer = table_.insert(id);
      if (peer == nullptr) return nullptr;
      attach(*peer, *transport, *link, reason_for(answers.size() - 1, answers));
      if (doorbell_ != nullptr) doorbell_->ring_if_sleeping();
      return peer;
    }
    const std::string& why = reason_for(transports_.size(), answers);
    const bool due = !is_awaited(id.nid, id.pid) && said_unreached_.is_due(key_of(id), now_ns());
    log_message(due ? LogLevel::warn : LogLevel::debug, "no transport reaches %s: %s",
                ProcessText(id.nid, id.pid).c_str(), why.c_str());
    unreached_because_ = &why;
  } catch (...) {
    log_message(LogLevel::error, "no memory to connect to %s", ProcessText(id.nid, id.pid).c_str());
  }
  return nullptr;
}

void PeerDirectory::attach(Peer& peer, Transport& transport, Link& link,
                           const std::string& not_others) noexcept {
  const Capabilities& capabilities = transport.capabilities();
  if (log_enabled(LogLevel::info)) {
    const std::string device = transport.device();
    log_message(
        LogLevel::info, "%s is reached by %s%s%s", ProcessText(peer.id.nid, peer.id.pid).c_str(),
        text_of(capabilities.name, device.empty() ? "" : " (", device, device.empty() ? "" : ")")
            .c_str(),
        not_others.empty() ? "" : "; not by ", not_others.c_str());
  }
  const LockGuard guard(peer.send_lock);
  std::atomic_ref<Link*>(peer.route.link).store(&link, std::memory_order_relaxed);
  peer.route.transport = &transport;
  peer.awaits_process.store(!capabilities.finds_at_once && transport.incarnation(link) == 0,
                            std::memory_order_relaxed);
  peer.failure.not_others = &not_others;
  peer.route.in_process_sends = capabilities.in_process ? in_process_sends_ : nullptr;
  peer.route.eager_put_bytes.store(
      capabilities.remote_access
          ? std::min(capabilities.remote_threshold_bytes, capabilities.max_eager_bytes)
          : capabilities.max_eager_bytes,
      std::memory_order_relaxed);
  peer.awaited_puts.open(awaited_put_rings_);
  set_peer(link, &peer);
  peer.set_failed(false);
}

Peer* PeerDirectory::accept(Link& link, Transport& transport) noexcept {
  Peer* peer = table_.find(link.peer);
  if (peer == nullptr) peer = table_.insert(link.peer);
  if (peer == nullptr) {
    log_message(LogLevel::error, "too many peers: %s is not heard",
                ProcessText(link.peer.nid, link.peer.pid).c_str());
    return nullptr;
  }
  // The peer may have connected before a preferred transport reached this process.
  if (attach_by_better(*peer, transport, transport.incarnation(link))) {
    set_peer(link, peer);
    return peer;
  }
  size_t index = 0;
  while (transports_[index].get() != &transport) ++index;
  try {
    const std::vector<std::string> answers(index, "the peer connected by another one");
    attach(*peer, transport, link, reason_for(index, answers));
  } catch (...) {
    static const std::string unknown = "no memory to say";
    attach(*peer, transport, link, unknown);
  }
  return peer;
}

void PeerDirectory::try_better(Peer& peer) noexcept {
  const LockGuard guard(mutex_);
  const uint64_t found = peer.route.transport->incarnation(*peer.route.link);
  if (found == 0 || peer.failed.load(std::memory_order_relaxed)) return;
  peer.awaits_process.store(false, std::memory_order_relaxed);
  static_cast<void>(attach_by_better(peer, *peer.route.transport, found));
}

// Attaches the peer by a transport that precedes `than` and leads to the same process.
bool PeerDirectory::attach_by_better(Peer& peer, const Transport& than,
                                     uint64_t incarnation) noexcept {
  const WithoutCancellation scope;
  try {
    std::vector<std::string> answers;
    for (const std::unique_ptr<Transport>& transport : transports_) {
      if (transport.get() == &than) break;
      std::string& answer = answers.emplace_back();
      const Capabilities& offers = transport->capabilities();
      // Queued payloads may be as long as the other transport allows.
      if (!offers.finds_at_once || offers.max_eager_bytes < than.capabilities().max_eager_bytes)
        continue;
      Link* const link = transport->connect(peer.id, &answer);
      if (link == nullptr || transport->incarnation(*link) != incarnation) continue;
      attach(peer, *transport, *link, reason_for(answers.size() - 1, answers));
      return true;
    }
  } catch (...) {
    // No memory to look: what is connected serves.
  }
  return false;
}

void PeerDirectory::tell_of_failure(Peer& peer, const Link::Failure& failure,
                                    bool in_order) noexcept {
  const ProcessText process(peer.id.nid, peer.id.pid);
  if (in_order) return log_message(LogLevel::debug, "%s has left", process.c_str());
  // A program that waits for a process to start sends to it again and again.
  const uint64_t now = now_ns();
  const bool said =
      peer.failure.gone_said_ns != 0 && now - peer.failure.gone_said_ns < gone_said_again_ns;
  const bool awaited =
      failure.kind == Link::Failure::Kind::unanswered && is_awaited(peer.id.nid, peer.id.pid);
  if (!said && !awaited) peer.failure.gone_said_ns = now;
  log_message(said || awaited ? LogLevel::debug : LogLevel::warn, failure_format(failure.kind),
              process.c_str(), peer.route.transport->capabilities().name, failure.reason);
}

bool PeerDirectory::exclude_senders(Link& link, void (*action)(Link&, void*),
                                    void* argument) noexcept {
  if (Peer* const peer = peer_of(link); peer != nullptr) {
    const LockGuard guard(peer->send_lock);
    action(link, argument);
    return true;
  }
  // Nobody sends by a link without a peer, as one whose peer failed by another link. It would get
  // one under this lock.
  const LockGuard guard(mutex_);
  if (peer_of(link) != nullptr) return false;
  action(link, argument);
  return true;
}

PeerPath PeerDirectory::path_to(ProcessId id) {
  const LockGuard guard(mutex_);
  const Peer* peer = table_.find(id);
  if (peer != nullptr && peer->failed.load(std::memory_order_relaxed))
    return {nullptr, {}, peer->failure.because};
  unreached_because_ = nullptr;
  peer = connect(id);
  if (peer != nullptr)
    return {peer->route.transport->capabilities().name, peer->route.transport->device(),
            *peer->failure.not_others};
  return {nullptr, {}, unreached_because_ == nullptr ? "no memory" : *unreached_because_};
}

uint64_t PeerDirectory::sent(MessageKind kind, bool bytes) const noexcept {
  uint64_t sum = 0;
  for (const Peer& peer : all())
    sum += (bytes ? peer.sent.bytes : peer.sent.messages)[static_cast<unsigned>(kind)].get() +
           (kind == MessageKind::ack_batch && !bytes ? peer.acknowledged_in_place.get() : 0);
  return sum;
}

bool PeerDirectory::has_others() const noexcept {
  return std::ranges::any_of(all(), [](const Peer& peer) {
    return !peer.failed.load(std::memory_order_acquire) && peer.route.in_process_sends == nullptr;
  });
}

bool PeerDirectory::awaits_any() const noexcept {
  return std::ranges::any_of(
      all(), [](const Peer& peer) LINTEL_REQUIRES(polling) { return peer.is_awaited(); });
}

}  // namespace lintel

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
constexpr uint32_t most_counted_put_rings = 1u << 12;  // peers with counted puts
}  // namespace

bool PeerDirectory::open(Transports transports, std::span<const OpenedTransports::Unused> unused,
                         PollFlag& in_process_sends) noexcept {
  transports_ = transports;
  const LockGuard guard(mutex_);
  reasons_.open(transports, unused);
  in_process_sends_ = &in_process_sends;
  return table_.open() && counted_put_rings_.open(most_counted_put_rings);
}

Peer* PeerDirectory::peer_of(Link& link) noexcept {
  return static_cast<Peer*>(std::atomic_ref<void*>(link.context).load(std::memory_order_acquire));
}

// The poller may see a link before the thread that connected has finished with it.
void PeerDirectory::set_peer(Link& link, Peer* peer) noexcept {
  std::atomic_ref<void*>(link.context).store(peer, std::memory_order_release);
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
      attach(*peer, *transport, *link, reasons_.of(answers.size() - 1, answers));
      if (doorbell_ != nullptr) doorbell_->ring_if_sleeping();
      return peer;
    }
    const std::string& why = reasons_.of(transports_.size(), answers);
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
  std::atomic_ref<Link*>(peer.link).store(&link, std::memory_order_relaxed);
  peer.transport = &transport;
  peer.awaits_process.store(!capabilities.finds_at_once && transport.incarnation(link) == 0,
                            std::memory_order_relaxed);
  peer.not_others = &not_others;
  peer.in_process_sends = capabilities.in_process ? in_process_sends_ : nullptr;
  peer.eager_put_bytes.store(
      capabilities.remote_access
          ? std::min(capabilities.remote_threshold_bytes, capabilities.max_eager_bytes)
          : capabilities.max_eager_bytes,
      std::memory_order_relaxed);
  peer.counted_puts.open(counted_put_rings_);
  set_peer(link, &peer);
  peer.failed.store(false, std::memory_order_release);
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
    attach(*peer, transport, link, reasons_.of(index, answers));
  } catch (...) {
    static const std::string unknown = "no memory to say";
    attach(*peer, transport, link, unknown);
  }
  return peer;
}

void PeerDirectory::try_better(Peer& peer) noexcept {
  const LockGuard guard(mutex_);
  const uint64_t found = peer.transport->incarnation(*peer.link);
  if (found == 0 || peer.failed.load(std::memory_order_relaxed)) return;
  peer.awaits_process.store(false, std::memory_order_relaxed);
  static_cast<void>(attach_by_better(peer, *peer.transport, found));
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
      attach(peer, *transport, *link, reasons_.of(answers.size() - 1, answers));
      return true;
    }
  } catch (...) {
    // No memory to look: what is connected serves.
  }
  return false;
}

PeerPath PeerDirectory::path_to(ProcessId id) {
  const LockGuard guard(mutex_);
  const Peer* peer = table_.find(id);
  if (peer != nullptr && peer->failed.load(std::memory_order_relaxed))
    return {nullptr, {}, peer->failed_because};
  unreached_because_ = nullptr;
  peer = connect(id);
  if (peer != nullptr)
    return {peer->transport->capabilities().name, peer->transport->device(), *peer->not_others};
  return {nullptr, {}, unreached_because_ == nullptr ? "no memory" : *unreached_because_};
}

uint64_t PeerDirectory::sent(MessageKind kind, bool bytes) const noexcept {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < table_.size(); ++i) {
    const TrafficCounters& sent = table_.at(i).sent;
    sum += (bytes ? sent.bytes : sent.messages)[static_cast<unsigned>(kind)].get();
  }
  return sum;
}

bool PeerDirectory::has_others() const noexcept {
  for (uint32_t i = 0; i < table_.size(); ++i) {
    const Peer& peer = table_.at(i);
    if (!peer.failed.load(std::memory_order_acquire) && peer.in_process_sends == nullptr)
      return true;
  }
  return false;
}

bool PeerDirectory::awaits_any() const noexcept {
  for (uint32_t i = 0; i < table_.size(); ++i)
    if (table_.at(i).is_awaited()) return true;
  return false;
}

}  // namespace lintel

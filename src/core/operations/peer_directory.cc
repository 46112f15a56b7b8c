#include "core/operations/peer_directory.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "util/log.h"
#include "util/without_cancellation.h"

namespace lintel {

namespace {
constexpr uint32_t most_counted_put_rings = 1u << 12;  // peers with counted puts

// The poller may see a link before the thread that connected has finished with it.
void set_peer(Link& link, Peer* peer) noexcept {
  std::atomic_ref<void*>(link.context).store(peer, std::memory_order_release);
}
}  // namespace

bool PeerDirectory::open(Transports transports, PollFlag& in_process_sends) noexcept {
  transports_ = transports;
  in_process_sends_ = &in_process_sends;
  return table_.open() && counted_put_rings_.open(most_counted_put_rings);
}

Peer* PeerDirectory::peer_of(Link& link) noexcept {
  return static_cast<Peer*>(std::atomic_ref<void*>(link.context).load(std::memory_order_acquire));
}

Peer* PeerDirectory::connect(ProcessId id) noexcept {
  const WithoutCancellation scope;
  std::lock_guard guard(mutex_);
  Peer* peer = table_.find(id);
  if (peer != nullptr && !peer->failed.load(std::memory_order_relaxed)) return peer;
  try {
    std::string reasons;
    for (const std::unique_ptr<Transport>& transport : transports_) {
      std::string reason;
      Link* link = transport->connect(id, &reason);
      if (link == nullptr) {
        reasons += std::string(reasons.empty() ? "" : "; ") + transport->capabilities().name +
                   ": " + reason;
        continue;
      }
      if (peer == nullptr) peer = table_.insert(id);
      if (peer == nullptr) return nullptr;
      attach(*peer, *transport, *link);
      return peer;
    }
    log_message(LogLevel::info, "no transport reaches nid 0x%08x pid %u: %s", id.nid, id.pid,
                reasons.c_str());
  } catch (...) {
    log_message(LogLevel::error, "no memory to connect to nid 0x%08x pid %u", id.nid, id.pid);
  }
  return nullptr;
}

// mutex_ held.
void PeerDirectory::attach(Peer& peer, Transport& transport, Link& link) noexcept {
  std::lock_guard guard(peer.send_lock);
  peer.link = &link;
  peer.transport = &transport;
  const Capabilities& capabilities = transport.capabilities();
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
    log_message(LogLevel::error, "too many peers: nid 0x%08x pid %u is not heard", link.peer.nid,
                link.peer.pid);
    return nullptr;
  }
  attach(*peer, transport, link);
  return peer;
}

uint64_t PeerDirectory::sent(MessageKind kind, bool bytes) const noexcept {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < table_.size(); ++i) {
    const TrafficCounters& sent = table_.at(i).sent;
    sum += (bytes ? sent.bytes : sent.messages)[static_cast<unsigned>(kind)].get();
  }
  return sum;
}

bool PeerDirectory::awaits_any() const noexcept {
  for (uint32_t i = 0; i < table_.size(); ++i)
    if (table_.at(i).is_awaited()) return true;
  return false;
}

}  // namespace lintel

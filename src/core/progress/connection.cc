// Peers: connecting on first use, taking in those who come, letting go of those who died.
// Connection path; on_messages() is the message path.
#include <algorithm>
#include <atomic>

#include "core/objects/network_interface.h"
#include "core/operations/initiator.h"
#include "core/operations/plain_put.h"
#include "core/operations/target.h"
#include "util/clock.h"
#include "util/log.h"

namespace lintel {

namespace {
constexpr uint64_t gone_said_again_ns = 10'000'000'000;

// The poller may see a link before the thread that connected has finished with it.
void set_context(Link& link, void* context) noexcept {
  std::atomic_ref<void*>(link.context).store(context, std::memory_order_release);
}
void* context_of(Link& link) noexcept {
  return std::atomic_ref<void*>(link.context).load(std::memory_order_acquire);
}
}  // namespace

Peer* PhysicalInterface::connect(ProcessId id) noexcept {
  std::lock_guard guard(connect_mutex_);
  Peer* peer = peers_.find(id);
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
      if (peer == nullptr) peer = peers_.insert(id);
      if (peer == nullptr) return nullptr;
      attach_link(*peer, *transport, *link);
      return peer;
    }
    log_message(LogLevel::info, "no transport reaches nid 0x%08x pid %u: %s", id.nid, id.pid,
                reasons.c_str());
  } catch (...) {
    log_message(LogLevel::error, "no memory to connect to nid 0x%08x pid %u", id.nid, id.pid);
  }
  return nullptr;
}

// connect_mutex_ held.
void PhysicalInterface::attach_link(Peer& peer, Transport& transport, Link& link) noexcept {
  std::lock_guard guard(peer.send_lock);
  peer.link = &link;
  peer.transport = &transport;
  peer.in_process = transport.capabilities().in_process;
  const Capabilities& capabilities = transport.capabilities();
  peer.eager_put_bytes.store(
      capabilities.remote_access
          ? std::min(capabilities.remote_threshold_bytes, capabilities.max_eager_bytes)
          : capabilities.max_eager_bytes,
      std::memory_order_relaxed);
  peer.counted_puts.open(counted_put_rings_);
  set_context(link, &peer);
  peer.failed.store(false, std::memory_order_release);
}

void* PhysicalInterface::on_new_link(Link& link) noexcept {
  std::lock_guard guard(connect_mutex_);
  Peer* peer = peers_.find(link.peer);
  if (peer != nullptr && !peer->failed.load(std::memory_order_relaxed)) {
    if (peer->link == &link) return peer;
    fail_peer(*peer);
  }
  if (peer == nullptr) peer = peers_.insert(link.peer);
  if (peer == nullptr) {
    log_message(LogLevel::error, "too many peers: nid 0x%08x pid %u is not heard", link.peer.nid,
                link.peer.pid);
    return nullptr;
  }
  for (const std::unique_ptr<Transport>& transport : transports_) {
    if (transport.get() != polled_transport_) continue;
    attach_link(*peer, *transport, link);
  }
  return peer;
}

void PhysicalInterface::on_peer_failed(Link& link) noexcept {
  auto* peer = static_cast<Peer*>(context_of(link));
  if (peer == nullptr) return;
  std::lock_guard guard(connect_mutex_);
  // An earlier incarnation may be reported after its successor has connected.
  if (peer->link != &link || peer->failed.load(std::memory_order_relaxed)) return;
  fail_peer(*peer);
}

// Every operation outstanding ends as PTL_NI_UNDELIVERABLE (spec 3.13.3). Token held.
void PhysicalInterface::fail_peer(Peer& peer) noexcept {
  // A peer that closed its interface in order leaves nothing behind that could fail.
  const bool in_order = !peer.has_outstanding() && peer.queue_length == 0;
  if (in_order) {
    log_message(LogLevel::debug, "peer nid 0x%08x pid %u has left", peer.id.nid, peer.id.pid);
  } else {
    // Whoever waits for a process to start calls it again and again.
    const uint64_t now = now_ns();
    const bool said = peer.gone_said_ns != 0 && now - peer.gone_said_ns < gone_said_again_ns;
    if (!said) peer.gone_said_ns = now;
    log_message(said ? LogLevel::debug : LogLevel::warn,
                "peer nid 0x%08x pid %u is gone: operations to it end as PTL_NI_UNDELIVERABLE",
                peer.id.nid, peer.id.pid);
    peers_failed.increment();
  }
  QueuedSend* queued;
  {
    std::lock_guard guard(peer.send_lock);
    peer.failed.store(true, std::memory_order_release);
    queued = peer.queue_head;
    peer.queue_head = nullptr;
    peer.queue_tail = &peer.queue_head;
    peer.queue_length = 0;
  }
  peer.ack_count = 0;
  while (queued != nullptr) {
    QueuedSend* next = queued->next_queued;
    if (queued->kind == QueuedSend::Kind::request) {
      fail_unsent_operation(*this, static_cast<Operation&>(*queued), PTL_NI_UNDELIVERABLE);
    } else if (queued->kind == QueuedSend::Kind::answer) {
      answers_.release(answers_.index_of(static_cast<Answer&>(*queued)));
    }
    queued = next;  // data of operations and transfers end with these, below
  }
  for (uint32_t i = 0; i < operations_.high_water(); ++i) {
    Operation& operation = operations_.at(i);
    if (operation.peer.load(std::memory_order_acquire) == &peer) fail_operation(*this, operation);
  }
  fail_counted_puts(peer);
  return_ended_operations(peer);
  // One that took its leave has said what it had.
  static_cast<void>(end_released_transfers());
  peer.unreleased_head = nullptr;
  for (uint32_t i = 0; i < transfers_.high_water(); ++i) {
    Transfer& transfer = transfers_.at(i);
    if (transfer.peer.load(std::memory_order_acquire) != &peer) continue;
    // One that is to be advanced fails by itself, or has ended and only reports.
    bool active = false;
    for (Transfer* t = active_transfers_; t != nullptr; t = t->next_active)
      active |= t == &transfer;
    if (active)
      transfer.stays = false;  // nobody says any more when its memory is released
    else
      fail_transfer(*this, transfer);
  }
}

void PhysicalInterface::on_messages(Link& link, const InboundMessage* messages,
                                    unsigned count) noexcept {
  auto* peer = static_cast<Peer*>(context_of(link));
  if (peer == nullptr) [[unlikely]] {
    peer = static_cast<Peer*>(on_new_link(link));
    if (peer == nullptr) return;
  }
  for (unsigned i = 0; i < count; ++i) {
    const InboundMessage& message = messages[i];
    received.count(message.header.kind, message.payload_length);
    const bool may_join =
        message.header.kind == MessageKind::put && (message.header.flags & flag_remote_memory) != 0;
    if (batch_.count != 0 && !may_join) fetch_batch(*this);
    switch (message.header.kind) {
      case MessageKind::put:
        if (deliver_plain_put(*this, *peer, message)) [[likely]]
          break;
        [[fallthrough]];
      case MessageKind::get:
      case MessageKind::atomic:
      case MessageKind::fetch_atomic:
      case MessageKind::swap:
        handle_request(*this, *peer, message);
        break;
      case MessageKind::ack:
        handle_ack(*this, *peer, message.header);
        break;
      case MessageKind::ack_batch:
        handle_ack_batch(*this, *peer, message);
        break;
      case MessageKind::reply:
        handle_reply(*this, *peer, message);
        break;
      case MessageKind::data_request:
        handle_data_request(*this, *peer, message.header);
        break;
      case MessageKind::data:
        if ((message.header.modes & data_for_reply) != 0) {
          handle_reply_data(*this, *peer, message);
        } else {
          handle_transfer_data(*this, *peer, message);
        }
        break;
      case MessageKind::connection:
      case MessageKind::none:
        messages_refused.increment();
        break;
    }
  }
  if (batch_.count != 0) fetch_batch(*this);
  flush_acknowledgements(*peer);
  return_ended_operations(*peer);
}

}  // namespace lintel

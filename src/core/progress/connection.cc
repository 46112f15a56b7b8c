// What transports hand up: messages by their kind, links that come and go.
// Message path for on_messages(); connection path otherwise.
#include "core/objects/network_interface.h"
#include "core/operations/initiator.h"
#include "core/operations/memory_access.h"
#include "core/operations/peer_failure.h"
#include "core/operations/plain_put.h"
#include "core/operations/target.h"

namespace lintel {

void* PhysicalInterface::on_new_link(Link& link) noexcept {
  const PeerDirectory::Lock lock = peers_.lock();
  Peer* const peer = peers_.find(link.peer);
  if (peer != nullptr && !peer->failed.load(std::memory_order_relaxed)) {
    if (peer->link == &link) return peer;
    fail_peer(*this, *peer);
  }
  return peers_.accept(link, *polled_transport_);
}

void PhysicalInterface::on_peer_failed(Link& link) noexcept {
  Peer* const peer = PeerDirectory::peer_of(link);
  if (peer == nullptr) return;
  const PeerDirectory::Lock lock = peers_.lock();
  // An earlier incarnation may be reported after its successor has connected.
  if (peer->link == &link && !peer->failed.load(std::memory_order_relaxed)) fail_peer(*this, *peer);
}

void PhysicalInterface::on_remote_done(Link& link, uint32_t token, RemoteResult result) noexcept {
  end_remote_access(*this, link, token, result);
}

bool PhysicalInterface::may_access(Link& link, const RemoteMemory& memory, bool write) noexcept {
  return lintel::may_access(operations_, PeerDirectory::peer_of(link), memory, write);
}

void PhysicalInterface::on_messages(Link& link, const InboundMessage* messages,
                                    unsigned count) noexcept {
  auto* peer = PeerDirectory::peer_of(link);
  if (peer == nullptr) [[unlikely]] {
    peer = static_cast<Peer*>(on_new_link(link));
    if (peer == nullptr) return;
  }
  for (unsigned i = 0; i < count; ++i) {
    const InboundMessage& message = messages[i];
    received.count(message.header.kind, message.payload_length);
    const bool may_join =
        message.header.kind == MessageKind::put && (message.header.flags & flag_remote_memory) != 0;
    if (transfers_.batch().count != 0 && !may_join) fetch_batch(*this);
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
  if (transfers_.batch().count != 0) fetch_batch(*this);
  answers_.flush_acknowledgements(*peer);
  operations_.return_ended(*peer);
}

}  // namespace lintel

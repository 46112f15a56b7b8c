// What a transport had no room for waits here, one queue per peer, in order. Message path.
#include <algorithm>
#include <mutex>

#include "core/operations/initiator.h"
#include "core/operations/target.h"
#include "core/progress/physical_interface.h"

namespace lintel {

void enqueue_send(PhysicalInterface& interface, Peer& peer, QueuedSend& item) noexcept {
  item.next_queued = nullptr;
  *peer.queue_tail = &item;
  peer.queue_tail = &item.next_queued;
  ++peer.queue_length;
  interface.sends_queued.increment();
  interface.list_peer_with_queue(peer);
}

void PhysicalInterface::list_peer_with_queue(Peer& peer) noexcept {
  if (peer.queue_listed) return;
  peer.queue_listed = true;
  std::lock_guard guard(queue_list_lock_);
  peer.next_with_queue = peers_with_queue_.load(std::memory_order_relaxed);
  peers_with_queue_.store(&peer, std::memory_order_release);
}

void PhysicalInterface::flush_all_queues() noexcept {
  Peer* peer;
  {
    std::lock_guard guard(queue_list_lock_);
    peer = peers_with_queue_.exchange(nullptr, std::memory_order_relaxed);
  }
  while (peer != nullptr) {
    Peer* next = peer->next_with_queue;
    flush_queue(*peer);
    peer = next;
  }
}

// Sends what the transport takes. The peer was taken off the list; it goes back if anything is left.
void PhysicalInterface::flush_queue(Peer& peer) noexcept {
  SentChain sent;  // reported after the lock is released, in order
  {
    std::lock_guard guard(peer.send_lock);
    peer.queue_listed = false;
    const bool several = peer.queue_length > 1 && !peer.failed.load(std::memory_order_relaxed);
    if (several) peer.transport->hold(*peer.link);
    while (peer.queue_head != nullptr && !peer.failed.load(std::memory_order_relaxed)) {
      QueuedSend* item = peer.queue_head;
      QueuedSend* next = item->next_queued;
      if (!send_queued(peer, *item, sent)) {
        send_retries.increment();
        break;
      }
      peer.queue_head = next;
      if (next == nullptr) peer.queue_tail = &peer.queue_head;
      --peer.queue_length;
    }
    if (several) peer.transport->let_go(*peer.link);
    if (peer.in_process) note_in_process_send();
    if (peer.queue_head != nullptr) list_peer_with_queue(peer);
  }
  for (QueuedSend* item = sent.first; item != nullptr;) {
    QueuedSend* next = item->next_queued;
    report_queued_send(*this, static_cast<Operation&>(*item));
    item = next;
  }
}

// True: the item has left the queue for good. An Operation whose first message went out is added to
// `sent`, since its events must not be posted under the send lock.
bool PhysicalInterface::send_queued(Peer& peer, QueuedSend& item, SentChain& sent) noexcept {
  switch (item.kind) {
    case QueuedSend::Kind::request: {
      auto& operation = static_cast<Operation&>(item);
      const SendStatus status = send_operation(*this, peer, operation);
      if (status == SendStatus::queue_full || status == SendStatus::connecting) return false;
      if (status == SendStatus::inaccessible) operation.fault = PTL_NI_SEGV;
      if (status == SendStatus::peer_failed) operation.fault = PTL_NI_UNDELIVERABLE;
      sent.append(operation);
      return true;
    }
    case QueuedSend::Kind::request_data:
      return send_request_data(peer, static_cast<Operation&>(item));
    case QueuedSend::Kind::transfer_data:
      return send_transfer_data(*this, peer, static_cast<Transfer&>(item));
    case QueuedSend::Kind::answer: {
      auto& answer = static_cast<Answer&>(item);
      const Piece piece{answer.payload, answer.payload_length};
      const SendStatus status = peer.transport->send(*peer.link, answer.header, &piece,
                                                     answer.payload_length != 0 ? 1 : 0);
      if (status == SendStatus::queue_full || status == SendStatus::connecting) return false;
      answers_.release(answers_.index_of(answer));
      return true;
    }
  }
  return true;
}

void PhysicalInterface::send_answer(Peer& peer, const MessageHeader& header, const Piece* pieces,
                                    unsigned count) noexcept {
  uint64_t payload_length = 0;
  for (unsigned i = 0; i < count; ++i) payload_length += pieces[i].length;
  std::lock_guard guard(peer.send_lock);
  if (peer.failed.load(std::memory_order_relaxed)) return;
  peer.sent.count(header.kind, payload_length);
  if (peer.queue_head == nullptr) {
    const SendStatus status = peer.transport->send(*peer.link, header, pieces, count);
    if (peer.in_process) note_in_process_send();
    if (status == SendStatus::sent || status == SendStatus::peer_failed) return;
  }
  const uint32_t index = answers_.allocate();
  if (index == Arena<Answer>::no_index) {
    // As many answers are queued as operations can be outstanding: the peer does not take them.
    messages_refused.increment();
    return;
  }
  Answer& answer = answers_.at(index);
  answer.kind = QueuedSend::Kind::answer;
  answer.header = header;
  answer.payload_length = static_cast<uint32_t>(payload_length);
  std::byte* to = answer.payload;
  for (unsigned i = 0; i < count; ++i) {
    std::copy_n(pieces[i].base, pieces[i].length, to);
    to += pieces[i].length;
  }
  enqueue_send(*this, peer, answer);
}

}  // namespace lintel

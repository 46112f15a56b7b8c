#include "core/operations/flush_queues.h"

#include "core/operations/initiator.h"
#include "core/operations/initiator_answers.h"
#include "core/operations/physical_interface.h"
#include "core/operations/target_transfer.h"
#include "util/lock.h"

namespace lintel {

namespace {

// Queued operations whose first message has gone out, in the order of their calls.
struct SentChain {
  QueuedSend* first = nullptr;
  QueuedSend** last = &first;
  void append(QueuedSend& item) noexcept {
    item.next_queued = nullptr;
    *last = &item;
    last = &item.next_queued;
  }
};

// True: the item leaves the queue for good.
bool send_queued(PhysicalInterface& physical, Peer& peer, QueuedSend& item) noexcept
    LINTEL_REQUIRES(peer.send_lock) LINTEL_REQUIRES(polling) {
  switch (item.kind) {
    case QueuedSend::Kind::request: {
      auto& operation = static_cast<Operation&>(item);
      const SendStatus status = send_operation(physical, peer, operation);
      if (status == SendStatus::queue_full || status == SendStatus::connecting) return false;
      if (status == SendStatus::inaccessible) operation.fault = PTL_NI_SEGV;
      if (status == SendStatus::peer_failed) operation.fault = PTL_NI_UNDELIVERABLE;
      return true;
    }
    case QueuedSend::Kind::request_data:
      return send_request_data(peer, static_cast<Operation&>(item));
    case QueuedSend::Kind::transfer_data:
      return send_transfer_data(physical, peer, static_cast<Transfer&>(item));
    case QueuedSend::Kind::answer:
      return physical.answers().send_queued(peer, static_cast<Answer&>(item));
    case QueuedSend::Kind::mark:
      break;
  }
  return true;
}

// nullptr: nothing can go. A request that would ask too much of the peer has to wait, and all
// requests behind it, whose order is kept.
QueuedSend* next_to_send(SendQueues& queues, Peer& peer) noexcept LINTEL_REQUIRES(peer.send_lock) {
  if (peer.failed.load(std::memory_order_relaxed)) return nullptr;
  QueuedSend* const first = queues.first(peer);
  if (first == nullptr || first->kind != QueuedSend::Kind::request ||
      !has_to_wait(peer, static_cast<Operation&>(*first).header))
    return first;
  queues.hold_requests(peer);
  return queues.first_not_held(peer);
}

void flush_queue(PhysicalInterface& physical, Peer& peer) noexcept LINTEL_REQUIRES(polling) {
  physical.peers().reconsider(peer);
  SendQueues& queues = physical.queues();
  SentChain sent;  // their events must not be posted under the send lock
  {
    const LockGuard guard(peer.send_lock);
    queues.begin_flush(peer);
    const bool several = peer.queue_length > 1 && !peer.failed.load(std::memory_order_relaxed);
    if (several) peer.transport->hold(*peer.link);
    while (QueuedSend* const item = next_to_send(queues, peer)) {
      if (!send_queued(physical, peer, *item)) {
        queues.retries.increment();
        break;
      }
      queues.remove(peer, *item);
      if (item->kind == QueuedSend::Kind::request) sent.append(*item);
    }
    if (several) peer.transport->let_go(*peer.link);
    peer.note_in_process_send();
    queues.end_flush(peer);
  }
  for (QueuedSend* item = sent.first; item != nullptr;) {
    QueuedSend* next = item->next_queued;
    report_queued_send(physical, static_cast<Operation&>(*item));
    item = next;
  }
}

}  // namespace

void flush_queues(PhysicalInterface& physical) noexcept {
  for (Peer* peer = physical.queues().take_listed(); peer != nullptr;) {
    Peer* const next = peer->next_with_queue;
    flush_queue(physical, *peer);
    peer = next;
  }
}

}  // namespace lintel

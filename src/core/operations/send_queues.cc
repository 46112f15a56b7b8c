#include "core/operations/send_queues.h"

#include <mutex>
#include <utility>

namespace lintel {

namespace {
// nullptr: an answer, which belongs to none.
const NetworkInterface* owner_of(const QueuedSend& item) noexcept {
  switch (item.kind) {
    case QueuedSend::Kind::answer:
      return nullptr;
    case QueuedSend::Kind::transfer_data:
      return static_cast<const Transfer&>(item).interface;
    default:
      return static_cast<const Operation&>(item).interface;
  }
}
}  // namespace

void SendQueues::enqueue(Peer& peer, QueuedSend& item) noexcept {
  item.next_queued = nullptr;
  *peer.queue_tail = &item;
  peer.queue_tail = &item.next_queued;
  ++peer.queue_length;
  queued.increment();
  list(peer);
}

void SendQueues::remove_first(Peer& peer) noexcept {
  peer.queue_head = peer.queue_head->next_queued;
  if (peer.queue_head == nullptr) peer.queue_tail = &peer.queue_head;
  --peer.queue_length;
  ++peer.queue_removed;
}

QueuedSend* SendQueues::take_all(Peer& peer) noexcept {
  peer.queue_tail = &peer.queue_head;
  peer.queue_length = 0;
  return std::exchange(peer.queue_head, nullptr);
}

void SendQueues::drop_all_of(Peer& peer, const NetworkInterface& interface) noexcept {
  QueuedSend** link = &peer.queue_head;
  while (QueuedSend* item = *link) {
    if (owner_of(*item) == &interface) {
      *link = item->next_queued;
      --peer.queue_length;
    } else {
      link = &item->next_queued;
    }
  }
  peer.queue_tail = link;
}

void SendQueues::list(Peer& peer) noexcept {
  if (peer.queue_listed) return;
  peer.queue_listed = true;
  std::lock_guard guard(lock_);
  peer.next_with_queue = listed_.load(std::memory_order_relaxed);
  listed_.store(&peer, std::memory_order_release);
  // Last: the poller takes this report before it looks for listed peers without the lock.
  work_due_.set();
}

Peer* SendQueues::take_listed() noexcept {
  std::lock_guard guard(lock_);
  return listed_.exchange(nullptr, std::memory_order_relaxed);
}

}  // namespace lintel

#include "core/operations/send_queues.h"

#include <utility>

#include "util/assert.h"
#include "util/lock.h"

namespace lintel {

namespace {
// Returns nullptr for an answer, which belongs to no interface.
const NetworkInterface* owner_of(const QueuedSend& item) noexcept {
  switch (item.kind) {
    case QueuedSend::Kind::answer:
      return nullptr;
    case QueuedSend::Kind::transfer_data:
      return static_cast<const Transfer&>(item).place.interface;
    default:
      return static_cast<const Operation&>(item).interface;
  }
}
}  // namespace

void SendQueues::enqueue(Peer& peer, QueuedSend& item) noexcept {
  const bool held = peer.held_head != nullptr && item.kind == QueuedSend::Kind::request;
  QueuedSend**& tail = held ? peer.held_tail : peer.queue_tail;
  item.next_queued = nullptr;
  *tail = &item;
  tail = &item.next_queued;
  ++peer.queue_length;
  queued.increment();
  list(peer);
}

void SendQueues::hold_requests(Peer& peer) noexcept {
  if (peer.held_head != nullptr) return;
  QueuedSend* item = peer.queue_head;
  peer.queue_head = &peer.held_mark;
  peer.queue_tail = &peer.held_mark.next_queued;
  for (QueuedSend* next; item != nullptr; item = next) {
    next = item->next_queued;
    QueuedSend**& tail = item->kind == QueuedSend::Kind::request ? peer.held_tail : peer.queue_tail;
    *tail = item;
    tail = &item->next_queued;
  }
  *peer.held_tail = *peer.queue_tail = nullptr;
  LINTEL_ASSERT(peer.held_head != nullptr);
}

// The last held request has gone.
void SendQueues::forget_mark(Peer& peer) noexcept {
  LINTEL_ASSERT(peer.held_head == nullptr && peer.queue_head == &peer.held_mark);
  peer.held_tail = &peer.held_head;
  peer.queue_head = std::exchange(peer.held_mark.next_queued, nullptr);
  if (peer.queue_head == nullptr) peer.queue_tail = &peer.queue_head;
}

void SendQueues::remove(Peer& peer, QueuedSend& item) noexcept {
  LINTEL_ASSERT(peer.queue_length != 0 && item.kind != QueuedSend::Kind::mark);
  if (&item == peer.held_head) {
    peer.held_head = item.next_queued;
    if (peer.held_head == nullptr) forget_mark(peer);
  } else {
    QueuedSend*& head = peer.held_head != nullptr ? peer.held_mark.next_queued : peer.queue_head;
    LINTEL_ASSERT(head == &item);
    head = item.next_queued;
    if (head == nullptr) peer.queue_tail = &head;
  }
  --peer.queue_length;
  ++peer.queue_removed;
}

QueuedSend* SendQueues::take_all(Peer& peer) noexcept {
  QueuedSend* const held = std::exchange(peer.held_head, nullptr);
  QueuedSend** const behind = peer.held_tail;
  if (held != nullptr) forget_mark(peer);
  peer.queue_tail = &peer.queue_head;
  peer.queue_length = 0;
  QueuedSend* const others = std::exchange(peer.queue_head, nullptr);
  if (held == nullptr) return others;
  *behind = others;
  return held;
}

// Drops the items of `interface` from `*link` on.
void SendQueues::drop_from(QueuedSend**& tail, QueuedSend** link, Peer& peer,
                           const NetworkInterface& interface) noexcept {
  while (QueuedSend* item = *link) {
    if (owner_of(*item) == &interface) {
      *link = item->next_queued;
      --peer.queue_length;
    } else {
      link = &item->next_queued;
    }
  }
  tail = link;
}

void SendQueues::drop_all_of(Peer& peer, const NetworkInterface& interface) noexcept {
  const bool held = peer.held_head != nullptr;
  drop_from(peer.queue_tail, held ? &peer.held_mark.next_queued : &peer.queue_head, peer,
            interface);
  if (!held) return;
  drop_from(peer.held_tail, &peer.held_head, peer, interface);
  if (peer.held_head == nullptr) forget_mark(peer);
}

void SendQueues::list(Peer& peer) noexcept {
  if (peer.queue_listed) return;
  peer.queue_listed = true;
  const LockGuard guard(lock_);
  peer.next_with_queue = listed_.load(std::memory_order_relaxed);
  listed_.store(&peer, std::memory_order_release);
  // Last: the poller takes this report before it looks for listed peers without the lock.
  work_due_.set();
}

Peer* SendQueues::take_listed() noexcept {
  const LockGuard guard(lock_);
  return listed_.exchange(nullptr, std::memory_order_relaxed);
}

}  // namespace lintel

#include "core/operations/send_queues.h"

#include <utility>

#include "core/objects/network_interface.h"
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
  if (peer.queue.head == nullptr && item.kind == QueuedSend::Kind::request) {
    if (StoppedEntry* const entry = stopping(peer, static_cast<Operation&>(item).header);
        entry != nullptr) {
      stopped.increment();
      peer.queue_counts.add();
      return entry->append(item);
    }
  }
  const bool held = peer.queue.held.head != nullptr && item.kind == QueuedSend::Kind::request;
  QueuedSend**& tail = held ? peer.queue.held.tail : peer.queue.tail;
  item.next_queued = nullptr;
  *tail = &item;
  tail = &item.next_queued;
  peer.queue_counts.add();
  queued.increment();
  list(peer);
}

void SendQueues::hold_requests(Peer& peer) noexcept {
  if (peer.queue.held.head != nullptr) return;
  QueuedSend* item = peer.queue.head;
  peer.queue.head = &peer.queue.held.mark;
  peer.queue.tail = &peer.queue.held.mark.next_queued;
  for (QueuedSend* next; item != nullptr; item = next) {
    next = item->next_queued;
    QueuedSend**& tail =
        item->kind == QueuedSend::Kind::request ? peer.queue.held.tail : peer.queue.tail;
    *tail = item;
    tail = &item->next_queued;
  }
  *peer.queue.held.tail = *peer.queue.tail = nullptr;
  LINTEL_ASSERT(peer.queue.held.head != nullptr);
}

// The last held request has gone.
void SendQueues::forget_mark(Peer& peer) noexcept {
  LINTEL_ASSERT(peer.queue.held.head == nullptr && peer.queue.head == &peer.queue.held.mark);
  peer.queue.held.tail = &peer.queue.held.head;
  peer.queue.head = std::exchange(peer.queue.held.mark.next_queued, nullptr);
  if (peer.queue.head == nullptr) peer.queue.tail = &peer.queue.head;
}

void SendQueues::set_stopped(Peer& peer, const MessageHeader& header) noexcept {
  const LockGuard guard(peer.send_lock);
  if (peer.failed.load(std::memory_order_relaxed)) return;
  if ((header.modes & holds_requests) != 0) {
    stopped_entries_.add(peer.queue.stopped, StoppedEntries::name_of(header));
  } else if (StoppedEntry* const entry = stopping(peer, header); entry != nullptr) {
    go_on(peer, *entry);
    if (peer.queue.head != nullptr) list(peer);
  }
  peer.note_stopped();
}

// Its requests go in front of the queue: those behind may be for the same entry.
void SendQueues::go_on(Peer& peer, StoppedEntry& entry) noexcept {
  if (entry.head != nullptr) {
    const bool held = peer.queue.held.head != nullptr;
    QueuedSend*& head = held ? peer.queue.held.head : peer.queue.head;
    if (head == nullptr) peer.queue.tail = entry.tail;
    *entry.tail = head;
    head = entry.head;
  }
  stopped_entries_.remove(peer.queue.stopped, entry);
}

bool SendQueues::stops(Peer& peer, QueuedSend& item) noexcept {
  if (peer.queue.stopped.first == nullptr || item.kind != QueuedSend::Kind::request) return false;
  StoppedEntry* const entry = stopping(peer, static_cast<Operation&>(item).header);
  if (entry == nullptr) return false;
  remove(peer, item);
  stopped.increment();
  peer.queue_counts.add();
  entry->append(item);
  return true;
}

bool SendQueues::has_too_many(Peer& peer, const MessageHeader& header) noexcept {
  const LockGuard guard(peer.send_lock);
  const StoppedEntry* const entry = stopping(peer, header);
  return entry != nullptr && entry->count >= StoppedEntries::most_requests;
}

void SendQueues::remove(Peer& peer, QueuedSend& item) noexcept {
  LINTEL_ASSERT(peer.queue_counts.length.load(std::memory_order_relaxed) != 0 &&
                item.kind != QueuedSend::Kind::mark);
  if (&item == peer.queue.held.head) {
    peer.queue.held.head = item.next_queued;
    if (peer.queue.held.head == nullptr) forget_mark(peer);
  } else {
    QueuedSend*& head =
        peer.queue.held.head != nullptr ? peer.queue.held.mark.next_queued : peer.queue.head;
    LINTEL_ASSERT(head == &item);
    head = item.next_queued;
    if (head == nullptr) peer.queue.tail = &head;
  }
  peer.queue_counts.remove();
}

QueuedSend* SendQueues::take_all(Peer& peer) noexcept {
  while (peer.queue.stopped.first != nullptr) go_on(peer, *peer.queue.stopped.first);
  QueuedSend* const held = std::exchange(peer.queue.held.head, nullptr);
  QueuedSend** const behind = peer.queue.held.tail;
  if (held != nullptr) forget_mark(peer);
  peer.queue.tail = &peer.queue.head;
  peer.queue_counts.length = 0;
  QueuedSend* const others = std::exchange(peer.queue.head, nullptr);
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
      --peer.queue_counts.length;
    } else {
      link = &item->next_queued;
    }
  }
  tail = link;
}

void SendQueues::drop_all_of(Peer& peer, const NetworkInterface& interface) noexcept {
  for (StoppedEntry* entry = peer.queue.stopped.first; entry != nullptr; entry = entry->next) {
    if (entry->name % interface_slots != interface.slot()) continue;
    drop_from(entry->tail, &entry->head, peer, interface);
    entry->count = 0;
  }
  const bool held = peer.queue.held.head != nullptr;
  drop_from(peer.queue.tail, held ? &peer.queue.held.mark.next_queued : &peer.queue.head, peer,
            interface);
  if (!held) return;
  drop_from(peer.queue.held.tail, &peer.queue.held.head, peer, interface);
  if (peer.queue.held.head == nullptr) forget_mark(peer);
}

void SendQueues::list(Peer& peer) noexcept {
  if (peer.queue.listed) return;
  peer.queue.listed = true;
  const LockGuard guard(lock_);
  peer.queue_counts.next_with_queue = listed_.load(std::memory_order_relaxed);
  listed_.store(&peer, std::memory_order_relaxed);
  // Last: the poller takes this report before it looks for listed peers without the lock.
  work_due_.set();
}

Peer* SendQueues::take_listed() noexcept {
  const LockGuard guard(lock_);
  return listed_.exchange(nullptr, std::memory_order_relaxed);
}

}  // namespace lintel

// Contexts with their queues and events. Message path but for the first copy of a context and
// direction.
#include "memory_kind/context_queues.h"

#include "util/assert.h"

namespace lintel {

ContextQueues::Entry* ContextQueues::find(const DeviceContext& context) noexcept {
  LockGuard guard(lock_);
  Entry* free = nullptr;
  for (Entry& entry : entries_) {
    if (entry.in_use && !entry.destroyed && entry.context == context) return &entry;
    // One that was destroyed is free when the last ticket is given back.
    if (free == nullptr && (!entry.in_use || (entry.destroyed && entry.tickets == 0)))
      free = &entry;
  }
  if (free == nullptr) return nullptr;
  free->context = context;
  free->in_use = true;
  free->destroyed = false;
  free->event_count = 0;
  for (auto& queue : free->queues) queue.store(nullptr, std::memory_order_relaxed);
  return free;
}

DeviceDriver::Queue ContextQueues::queue(Entry& entry, Direction direction) noexcept {
  std::atomic<DeviceDriver::Queue>& queue = entry.queues[direction];
  DeviceDriver::Queue found = queue.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  LockGuard guard(making_);
  found = queue.load(std::memory_order_relaxed);
  if (found != nullptr) return found;
  found = driver_.make_queue(entry.context, direction == awaited);
  queue.store(found, std::memory_order_release);
  return found;
}

void ContextQueues::forget(Entry& entry) noexcept {
  LockGuard guard(lock_);
  entry.destroyed = true;
}

bool ContextQueues::any(DeviceContext* out) noexcept {
  LockGuard guard(lock_);
  for (const Entry& entry : entries_)
    if (entry.in_use && !entry.destroyed) {
      *out = entry.context;
      return true;
    }
  return false;
}

CopyTicket ContextQueues::take_ticket(Entry& entry, bool* full) noexcept {
  unsigned index = max_tickets;
  {
    LockGuard guard(lock_);
    for (unsigned i = 0; i < max_tickets && index == max_tickets; ++i) {
      const unsigned candidate = (next_ticket_ + i) % max_tickets;
      if (tickets_[candidate].entry == nullptr) index = candidate;
    }
    *full = index == max_tickets;
    if (*full) return no_copy;
    next_ticket_ = (index + 1) % max_tickets;
    tickets_[index].entry = &entry;
    ++entry.tickets;
    tickets_[index].event = entry.event_count == 0 ? nullptr : entry.events[--entry.event_count];
  }
  const CopyTicket ticket = index + 1;
  if (tickets_[index].event == nullptr) tickets_[index].event = driver_.make_event(entry.context);
  if (tickets_[index].event != nullptr) return ticket;
  give_back(ticket);
  return no_copy;
}

void ContextQueues::give_back(CopyTicket ticket) noexcept {
  LINTEL_ASSERT(ticket != no_copy && ticket <= max_tickets);
  LockGuard guard(lock_);
  Ticket& given = tickets_[ticket - 1];
  LINTEL_ASSERT(given.entry != nullptr && given.entry->tickets != 0);
  Entry& entry = *given.entry;
  --entry.tickets;
  if (given.event != nullptr && !entry.destroyed) {
    LINTEL_ASSERT(entry.event_count < max_tickets);
    entry.events[entry.event_count++] = given.event;
  }
  given = {};
}

DeviceDriver::Event ContextQueues::event_of(CopyTicket ticket) const noexcept {
  LINTEL_ASSERT(ticket != no_copy && ticket <= max_tickets &&
                tickets_[ticket - 1].entry != nullptr);
  return tickets_[ticket - 1].event;
}

const DeviceContext& ContextQueues::context_of(CopyTicket ticket) const noexcept {
  LINTEL_ASSERT(ticket != no_copy && ticket <= max_tickets &&
                tickets_[ticket - 1].entry != nullptr);
  return tickets_[ticket - 1].entry->context;
}

}  // namespace lintel

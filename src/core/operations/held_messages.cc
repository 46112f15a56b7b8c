#include "core/operations/held_messages.h"

#include <algorithm>

#include "util/address_space.h"
#include "util/assert.h"
#include "util/lock.h"

namespace lintel {

namespace {

// Its data, or its answer, would have to pass the link to the initiator.
bool needs_initiator(const MessageHeader& header) noexcept {
  return (header.flags & flag_remote_memory) != 0 ||
         (header.kind != MessageKind::put && header.kind != MessageKind::atomic);
}

}  // namespace

bool HeldMessages::open() noexcept {
  const LockGuard guard(open_mutex_);
  const auto open_once = [](auto& pool, uint32_t capacity) {
    return pool.capacity() != 0 || pool.open(capacity);
  };
  return open_once(messages_, fitting_capacity(most_messages, sizeof(HeldMessage))) &&
         open_once(long_payloads_, fitting_capacity(most_long_messages, sizeof(LongPayload))) &&
         open_once(queue_pool_, most_queues);
}

HeldQueue* HeldMessages::find(const Peer& peer, const PortalEntry& portal) noexcept {
  HeldQueue* queue = peer.held.first;
  while (queue != nullptr && queue->portal != &portal) queue = queue->next_of_peer;
  return queue;
}

HeldMessage* HeldMessages::copy(Peer& peer, const InboundMessage& message) noexcept {
  if (message.payload_length > largest_reply_bytes ||
      !may_take(peer.held.messages, most_of_peer, in_use_, messages_.capacity()))
    return nullptr;
  LINTEL_ASSERT(messages_.capacity() != 0);
  const uint32_t index = messages_.allocate();
  if (index == Arena<HeldMessage>::no_index) return nullptr;
  HeldMessage& copy = messages_.at(index);
  std::byte* to = copy.payload;
  if (message.payload_length > short_answer_bytes) {
    copy.long_payload = long_payloads_.allocate();
    if (copy.long_payload == Arena<LongPayload>::no_index) {
      messages_.release(index);
      return nullptr;
    }
    to = long_payloads_.at(copy.long_payload).bytes;
  }
  copy.next = nullptr;
  copy.header = message.header;
  copy.payload_length = message.payload_length;
  std::copy_n(message.payload, message.payload_length, to);
  ++peer.held.messages;
  ++in_use_;
  return &copy;
}

HeldQueue* HeldMessages::begin(Peer& peer, NetworkInterface& interface,
                               PortalEntry& portal) noexcept {
  const uint32_t index = queue_pool_.allocate();
  if (index == Arena<HeldQueue>::no_index) return nullptr;
  HeldQueue& queue = queue_pool_.at(index);
  queue.peer = &peer;
  queue.interface = &interface;
  queue.portal = &portal;
  queue.head = nullptr;
  queue.tail = &queue.head;
  queue.untold = messages_per_reminder;
  queue.next = nullptr;
  queue.next_of_peer = peer.held.first;
  peer.held.first = &queue;
  HeldQueue** link = &queues_;
  while (*link != nullptr) link = &(*link)->next;
  *link = &queue;
  portal.set_held_initiators(portal.held_initiators + 1);
  interface.held_queues.fetch_add(1, std::memory_order_relaxed);
  return &queue;
}

HeldQueue* HeldMessages::add(Peer& peer, NetworkInterface& interface, PortalEntry& portal,
                             const InboundMessage& message) noexcept {
  HeldMessage* const added = copy(peer, message);
  if (added == nullptr) return nullptr;
  HeldQueue* queue = find(peer, portal);
  if (queue == nullptr) queue = begin(peer, interface, portal);
  if (queue == nullptr) {
    release(peer, *added);
    return nullptr;
  }
  *queue->tail = added;
  queue->tail = &added->next;
  ++queue->untold;
  held.increment();
  return queue;
}

void HeldMessages::tell(HeldQueue& queue) noexcept {
  if (queue.untold < messages_per_reminder) return;
  queue.untold = 0;
  send_state(queue, holds_requests);
}

void HeldMessages::send_state(const HeldQueue& queue, uint8_t modes) noexcept {
  MessageHeader header{};
  header.kind = MessageKind::hold;
  header.flags = static_cast<uint8_t>(queue.interface->slot());
  header.modes = modes;
  header.pt_index = queue.portal->index;
  answers_.send(*queue.peer, header, nullptr, 0);
}

InboundMessage HeldMessages::describe(const HeldMessage& message) const noexcept {
  return {message.header,
          message.payload_length > short_answer_bytes
              ? long_payloads_.at(message.long_payload).bytes
              : message.payload,
          message.payload_length};
}

void HeldMessages::release(Peer& peer, HeldMessage& message) noexcept {
  LINTEL_ASSERT(peer.held.messages != 0 && in_use_ != 0);
  if (message.payload_length > short_answer_bytes) long_payloads_.release(message.long_payload);
  messages_.release(message);
  --peer.held.messages;
  --in_use_;
}

void HeldMessages::remove_first(HeldQueue& queue) noexcept {
  HeldMessage& first = *queue.head;
  queue.head = first.next;
  if (queue.head == nullptr) queue.tail = &queue.head;
  release(*queue.peer, first);
}

void HeldMessages::end(HeldQueue** link) noexcept {
  HeldQueue& queue = **link;
  LINTEL_ASSERT(queue.head == nullptr);
  *link = queue.next;
  HeldQueue** of_peer = &queue.peer->held.first;
  while (*of_peer != &queue) of_peer = &(*of_peer)->next_of_peer;
  *of_peer = queue.next_of_peer;
  {
    PortalEntry& portal = *queue.portal;
    const LockGuard guard(portal.lock);
    LINTEL_ASSERT(portal.held_initiators != 0);
    portal.set_held_initiators(portal.held_initiators - 1);
    queue.interface->held_queues.fetch_sub(1, std::memory_order_relaxed);
  }
  send_state(queue, 0);
  queue_pool_.release(queue);
}

void HeldMessages::forget_initiator(Peer& peer) noexcept {
  for (HeldQueue* queue = peer.held.first; queue != nullptr; queue = queue->next_of_peer) {
    HeldMessage** link = &queue->head;
    while (*link != nullptr) {
      HeldMessage& message = **link;
      if (needs_initiator(message.header)) {
        *link = message.next;
        release(peer, message);
        continue;
      }
      // A later process at the same address may have an operation with that cookie.
      message.header.ask_for_no_ack();
      message.header.cookie = 0;
      message.header.flags &= static_cast<uint8_t>(~flag_tell_refusal);
      link = &message.next;
    }
    queue->tail = link;
    queue->untold = messages_per_reminder;
  }
  if (peer.held.first != nullptr) note_room();  // ends empty queues
}

}  // namespace lintel

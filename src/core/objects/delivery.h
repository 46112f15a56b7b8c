// Actions after a message has been delivered into an entry: events, counts, unlinking
// (spec 3.11.1, 3.12.1, 3.13.1). Message path.
#pragma once

#include <cstdint>

#include "core/objects/network_interface.h"
#include "core/objects/portal_entry.h"
#include "util/assert.h"

namespace lintel {

// The target's view of a message that was delivered, or failed to be.
struct Delivery {
  const MessageHeader& header;
  ptl_process_t initiator;
  ptl_uid_t uid;
  std::byte* start;
  uint64_t mlength;
  ptl_ni_fail_t fail;
};

// A change of a counter that is carried out after the lock is released, since it may start
// triggered operations.
struct PendingCount {
  CountingEvent* counter = nullptr;
  uint64_t success = 0;
  uint64_t failure = 0;
  void apply() const noexcept {
    if (counter == nullptr) return;
    if (failure != 0) {
      counter->add_failure(failure);
    } else {
      counter->add_success(success);
    }
  }
};

// Posts PTL_EVENT_PUT and its like if the entry wants it; returns what is to be counted.
PendingCount report_delivery(NetworkInterface& interface, PortalEntry& portal, ListEntry& entry,
                             const Delivery& delivery, bool reserved) noexcept
    LINTEL_REQUIRES(portal.lock);

[[nodiscard]] inline ptl_event_kind_t delivery_event_kind(MessageKind kind) noexcept {
  switch (kind) {
    case MessageKind::get:
      return PTL_EVENT_GET;
    case MessageKind::atomic:
      return PTL_EVENT_ATOMIC;
    case MessageKind::fetch_atomic:
    case MessageKind::swap:
      return PTL_EVENT_FETCH_ATOMIC;
    default:
      return PTL_EVENT_PUT;
  }
}

// The event that reports the delivery of a message of that kind (table 3-3).
[[nodiscard, gnu::always_inline]] inline ptl_event_t delivery_event(
    const NetworkInterface& interface, const ListEntry& entry, const Delivery& delivery,
    MessageKind kind) noexcept {
  const MessageHeader& header = delivery.header;
  const bool atomic = kind != MessageKind::put && kind != MessageKind::get;
  return {.start = delivery.start,
          .user_ptr = entry.user_ptr,
          .hdr_data = header.hdr_data,
          .match_bits = interface.matching() ? header.match_bits : 0,
          .rlength = header.length(),
          .mlength = delivery.mlength,
          .remote_offset = header.remote_offset,
          .initiator = delivery.initiator,
          .uid = delivery.uid,
          .pt_index = header.pt_index,
          .type = delivery_event_kind(kind),
          .ptl_list = entry.list,
          .ni_fail_type = delivery.fail,
          .atomic_operation = atomic ? header.atomic_operation() : PTL_MIN,
          .atomic_type = atomic ? header.datatype() : PTL_INT8_T};
}

// Whether the message just placed was the last that the entry takes: PTL_ME_USE_ONCE, or fewer than
// min_free bytes are left.
[[nodiscard]] inline bool entry_is_used_up(const ListEntry& entry) noexcept {
  if (entry.has(PTL_ME_USE_ONCE)) return true;
  return entry.has(PTL_ME_MANAGE_LOCAL) && entry.min_free != 0 &&
         entry.region.length() - entry.local_offset < entry.min_free;
}

// Takes the entry off its list; it lives on until settle_entry() finds nothing that refers to it.
void unlink_entry(PortalEntry& portal, ListEntry& entry) noexcept LINTEL_REQUIRES(portal.lock);

// Posts PTL_EVENT_AUTO_UNLINK and PTL_EVENT_AUTO_FREE when all messages of the entry have been
// reported (spec 3.13.1). Frees the entry when nothing refers to it. Uses the reservation or
// returns it.
void settle_entry(NetworkInterface& interface, PortalEntry& portal, ListEntry& entry,
                  bool unlink_reserved) noexcept LINTEL_REQUIRES(portal.lock);

// Ends the use of the slot of an entry that is off its list (or never was on one).
[[gnu::always_inline]] inline void end_entry(ListEntry& entry, bool by_call) noexcept {
  entry.region.close();
  entry.state = EntryState::free;
  // Nobody else changes the generation of an entry in use.
  const uint32_t generation = entry.generation.load(std::memory_order_relaxed);
  if (by_call)
    entry.end_told_of.store(generation & handle_generation_mask, std::memory_order_relaxed);
  entry.generation.store(generation + 1, std::memory_order_release);
}
// The same, and returns the slot.
inline void free_entry(NetworkInterface& interface, ListEntry& entry, bool by_call) noexcept {
  end_entry(entry, by_call);
  interface.entries().release(entry);
}
// The same for the next append to the portal table entry.
[[gnu::always_inline]] inline void spare_entry(PortalEntry& portal, ListEntry& entry) noexcept
    LINTEL_REQUIRES(portal.lock) {
  end_entry(entry, false);
  entry.next_in_list = portal.spare_entries.load(std::memory_order_relaxed);
  portal.spare_entries.store(&entry, std::memory_order_relaxed);
}
// Takes a spare slot; nullptr: there is none.
[[nodiscard, gnu::always_inline]] inline ListEntry* take_spare_entry(PortalEntry& portal) noexcept
    LINTEL_REQUIRES(portal.lock) {
  MatchNode* const first = portal.spare_entries.load(std::memory_order_relaxed);
  if (first == nullptr) return nullptr;
  portal.spare_entries.store(first->next_in_list, std::memory_order_relaxed);
  auto* const entry = static_cast<ListEntry*>(first);
  LINTEL_ASSERT(entry->state == EntryState::free);
  return entry;
}

// Receiver of the report of an unexpected header: an entry that was appended, or a search that
// deletes.
struct OverflowListener {
  unsigned options;
  void* user_ptr;
  CountingEvent* counter;
  bool is_search;
};

// Posts the event of `header` to `listener`, counts it, and releases the header. The header's
// data have arrived.
void report_overflow(NetworkInterface& interface, PortalEntry& portal, UnexpectedHeader& header,
                     const OverflowListener& listener) noexcept LINTEL_REQUIRES(portal.lock);
void report_overflow(NetworkInterface& interface, PortalEntry& portal, UnexpectedHeader& header,
                     const ListEntry& entry) noexcept LINTEL_REQUIRES(portal.lock);

// Releases a header and with it, perhaps, the overflow entry that it referred to.
void release_header(NetworkInterface& interface, PortalEntry& portal,
                    UnexpectedHeader& header) noexcept LINTEL_REQUIRES(portal.lock);

// The event of `header`.
[[nodiscard]] ptl_event_t describe_unexpected(NetworkInterface& interface,
                                              const PortalEntry& portal,
                                              const UnexpectedHeader& header, ptl_event_kind_t type,
                                              void* user_ptr) noexcept LINTEL_REQUIRES(portal.lock);
// Returns the event about the entry itself.
[[nodiscard]] ptl_event_t describe_entry(const PortalEntry& portal, const ListEntry& entry,
                                         ptl_event_kind_t type) noexcept
    LINTEL_REQUIRES(portal.lock);

}  // namespace lintel

// Events and counts at the target, and the end of list entries. Message path.
#include "core/objects/delivery.h"

#include <bit>

namespace lintel {

ptl_event_t describe_entry(const PortalEntry& portal, const ListEntry& entry,
                           ptl_event_kind_t type) noexcept {
  ptl_event_t event{};
  event.type = type;
  event.user_ptr = entry.user_ptr;
  event.pt_index = portal.index;
  event.ptl_list = entry.list;
  event.start = entry.region.address(0);
  event.ni_fail_type = PTL_NI_OK;
  return event;
}

PendingCount report_delivery(NetworkInterface& interface, PortalEntry& portal, ListEntry& entry,
                             const Delivery& delivery, bool reserved) noexcept {
  const unsigned options = entry.options;
  const bool ok = delivery.fail == PTL_NI_OK;
  if (portal.event_queue != nullptr && (options & PTL_ME_EVENT_COMM_DISABLE) == 0 &&
      (!ok || (options & PTL_ME_EVENT_SUCCESS_DISABLE) == 0)) {
    const ptl_event_t event = delivery_event(interface, entry, delivery, delivery.header.kind);
    portal.event_queue->queue.post(event, reserved);
  } else if (reserved) {
    portal.event_queue->queue.cancel_reservation();
  }
  PendingCount count;
  if (entry.counter != nullptr && (options & PTL_ME_EVENT_CT_COMM) != 0) {
    count.counter = entry.counter;
    if (ok) {
      count.success = (options & PTL_ME_EVENT_CT_BYTES) != 0 ? delivery.mlength : 1;
    } else {
      count.failure = 1;
    }
  }
  return count;
}

void unlink_entry(PortalEntry& portal, ListEntry& entry) noexcept {
  (entry.list == PTL_PRIORITY_LIST ? portal.priority : portal.overflow).remove(entry);
  entry.state = EntryState::unlinked;
  entry.unlink_announced = false;
  ++portal.retained;
}

void settle_entry(NetworkInterface& interface, PortalEntry& portal, ListEntry& entry,
                  bool unlink_reserved) noexcept {
  if (entry.state != EntryState::unlinked || entry.operations != 0) {
    // Every message in flight has a reservation of its own; that of the last one is used.
    if (unlink_reserved) portal.event_queue->queue.cancel_reservation();
    return;
  }
  const bool told = portal.event_queue != nullptr && !entry.has(PTL_ME_EVENT_UNLINK_DISABLE);
  if (!entry.unlink_announced) {
    entry.unlink_announced = true;
    if (told) {
      const ptl_event_t event = describe_entry(portal, entry, PTL_EVENT_AUTO_UNLINK);
      portal.event_queue->queue.post(event, unlink_reserved);
    }
  }
  if (entry.unexpected_headers != 0) return;
  // The event reports only buffers of the overflow list that could have held unexpected messages
  // (spec 3.13.1).
  if (told && entry.list == PTL_OVERFLOW_LIST && !entry.has(PTL_ME_UNEXPECTED_HDR_DISABLE))
    portal.event_queue->queue.post(describe_entry(portal, entry, PTL_EVENT_AUTO_FREE));
  --portal.retained;
  free_entry(interface, entry, false);
}

ptl_event_t describe_unexpected(NetworkInterface& interface, const PortalEntry& portal,
                                const UnexpectedHeader& header, ptl_event_kind_t type,
                                void* user_ptr) noexcept {
  const UnexpectedDetails details = interface.unexpected_headers().details_of(header);
  const bool atomic = header.kind != MessageKind::put && header.kind != MessageKind::get;
  return {.start = header.start,
          .user_ptr = user_ptr,
          .hdr_data = header.hdr_data,
          .match_bits = interface.matching() ? header.match_bits : 0,
          .rlength = details.rlength,
          .mlength = details.mlength,
          .remote_offset = details.remote_offset,
          .initiator = std::bit_cast<ptl_process_t>(header.source),
          .uid = header.uid,
          .pt_index = portal.index,
          .type = type,
          .ptl_list = PTL_OVERFLOW_LIST,
          .ni_fail_type = static_cast<ptl_ni_fail_t>(details.fail),
          .atomic_operation = atomic ? static_cast<ptl_op_t>(details.operation) : PTL_MIN,
          .atomic_type = atomic ? static_cast<ptl_datatype_t>(details.datatype) : PTL_INT8_T};
}

namespace {

// Returns the corresponding kind of event for an unexpected message.
ptl_event_kind_t overflow_of(ptl_event_kind_t kind) noexcept {
  static_assert(PTL_EVENT_GET_OVERFLOW == PTL_EVENT_GET + 1 &&
                PTL_EVENT_PUT_OVERFLOW == PTL_EVENT_PUT + 1 &&
                PTL_EVENT_ATOMIC_OVERFLOW == PTL_EVENT_ATOMIC + 1 &&
                PTL_EVENT_FETCH_ATOMIC_OVERFLOW == PTL_EVENT_FETCH_ATOMIC + 1);
  return static_cast<ptl_event_kind_t>(kind + 1);
}

}  // namespace

void report_overflow(NetworkInterface& interface, PortalEntry& portal, UnexpectedHeader& header,
                     const OverflowListener& listener) noexcept {
  const ptl_event_t event = describe_unexpected(
      interface, portal, header, overflow_of(delivery_event_kind(header.kind)), listener.user_ptr);
  const bool ok = event.ni_fail_type == PTL_NI_OK;
  const CountAnnouncement announcement(listener.counter);
  if (portal.event_queue != nullptr && (listener.options & PTL_ME_EVENT_OVER_DISABLE) == 0 &&
      (!ok || (listener.options & PTL_ME_EVENT_SUCCESS_DISABLE) == 0)) {
    portal.event_queue->queue.post(event);
  }
  if (listener.counter != nullptr) {
    if (listener.is_search) {
      // A search counts every match as one (spec 3.11.4, 3.12.4).
      listener.counter->add_success(1);
    } else if ((listener.options & PTL_ME_EVENT_CT_OVERFLOW) != 0) {
      if (!ok) {
        listener.counter->add_failure(1);
      } else {
        listener.counter->add_success(
            (listener.options & PTL_ME_EVENT_CT_BYTES) != 0 ? event.mlength : 1);
      }
    }
  }
  release_header(interface, portal, header);
}

void report_overflow(NetworkInterface& interface, PortalEntry& portal, UnexpectedHeader& header,
                     const ListEntry& entry) noexcept {
  report_overflow(interface, portal, header, {entry.options, entry.user_ptr, entry.counter, false});
}

void release_header(NetworkInterface& interface, PortalEntry& portal,
                    UnexpectedHeader& header) noexcept {
  UnexpectedPool& pool = interface.unexpected_headers();
  ListEntry& entry = interface.entries().at(header.overflow_entry());
  --entry.unexpected_headers;
  pool.release(header);
  interface.note_room();
  interface.status.unexpected_depth.fetch_sub(1, std::memory_order_relaxed);
  settle_entry(interface, portal, entry, false);
}

}  // namespace lintel

// A request at its target (spec 2.5, figures 2-10 and 2-11): find the entry, check permissions,
// deliver, report. Message path.
#include "core/operations/target_request.h"

#include <algorithm>

#include "core/objects/delivery.h"
#include "core/objects/network_interface.h"
#include "core/operations/answer.h"
#include "core/operations/atomics.h"
#include "core/operations/plain_put.h"
#include "core/operations/target_transfer.h"

namespace lintel {

namespace {

constexpr size_t largest_fetch_on_stack = 512;

// Offsets that PTL_ME_MAY_ALIGN allows to be rounded up to.
constexpr uint64_t placement_alignment = 8;

bool is_atomic(MessageKind kind) noexcept {
  return kind == MessageKind::atomic || kind == MessageKind::fetch_atomic ||
         kind == MessageKind::swap;
}
bool fetches(MessageKind kind) noexcept {
  return kind == MessageKind::fetch_atomic || kind == MessageKind::swap;
}

// Bytes of operand in front of the payload of a swap.
uint64_t operand_length(const MessageHeader& header) noexcept {
  return header.kind == MessageKind::swap && is_single_item(header.atomic_operation())
             ? datatype_size(header.datatype())
             : 0;
}

bool is_well_formed(const Arrival& arrival) noexcept {
  const MessageHeader& header = arrival.header;
  const uint64_t length = header.length();
  if ((header.flags &
       ~(flag_interface_mask | flag_remote_memory | flag_unreliable | flag_tell_refusal)) != 0)
    return false;
  const bool remote = (header.flags & flag_remote_memory) != 0;
  switch (header.kind) {
    case MessageKind::put:
      return remote ? arrival.payload_length % sizeof(RemoteMemory) == 0
                    : arrival.payload_length == length;
    case MessageKind::get:
      return arrival.payload_length % sizeof(RemoteMemory) == 0 &&
             (remote || (arrival.payload_length == 0 && length <= largest_reply_bytes));
    case MessageKind::atomic:
    case MessageKind::fetch_atomic:
    case MessageKind::swap: {
      const auto operation = header.atomic_operation();
      const auto datatype = header.datatype();
      if (remote || !atomic_allowed(operation, datatype, function_of(header.kind))) return false;
      const uint64_t item = datatype_size(datatype);
      if (length > largest_atomic_bytes || length % item != 0) return false;
      if (is_single_item(operation) && length > item) return false;
      return arrival.payload_length == length + operand_length(header);
    }
    default:
      return false;
  }
}

// Where in the entry the message goes, and how many bytes of it.
struct Placement {
  uint64_t offset;
  uint64_t mlength;
};

uint64_t placement_offset(const ListEntry& entry, const MessageHeader& header) noexcept {
  return entry.has(PTL_ME_MANAGE_LOCAL) ? entry.local_offset : header.remote_offset;
}

// The local offset after a message that ended at `end`. Alignment is paid for here and not when the
// next message is placed, so that min_free bytes are truly free as long as the entry is linked.
uint64_t next_local_offset(const ListEntry& entry, uint64_t end) noexcept {
  if (!entry.has(PTL_ME_MAY_ALIGN) || entry.has(PTL_ME_LOCAL_INC_UH_RLENGTH)) return end;
  const uint64_t aligned = (end + placement_alignment - 1) & ~(placement_alignment - 1);
  return aligned < end ? end : std::min(aligned, entry.region.length());
}

uint64_t available_at(const ListEntry& entry, uint64_t offset) noexcept {
  return offset < entry.region.length() ? entry.region.length() - offset : 0;
}

Placement place(const ListEntry& entry, const MessageHeader& header) noexcept {
  const uint64_t offset = placement_offset(entry, header);
  uint64_t mlength = std::min(header.length(), available_at(entry, offset));
  // Atomics are truncated to whole items.
  if (is_atomic(header.kind)) mlength -= mlength % datatype_size(header.datatype());
  return {offset, mlength};
}

// PTL_ME_NO_TRUNCATE lets a message that does not fit pass by; zero bytes always fit (spec 3.12.1).
bool accepts(const ListEntry& entry, const MessageHeader& header) noexcept {
  return !entry.has(PTL_ME_NO_TRUNCATE) || header.length() == 0 ||
         available_at(entry, placement_offset(entry, header)) >= header.length();
}

ListEntry* find_entry(const Arrival& arrival, MatchList& list) noexcept {
  if (!arrival.interface.matching()) return static_cast<ListEntry*>(list.head());
  return static_cast<ListEntry*>(
      list.find(arrival.header.match_bits, arrival.initiator.source, [&](const MatchNode& node) {
        return accepts(static_cast<const ListEntry&>(node), arrival.header);
      }));
}

// The operations that an entry must allow (table 4-7).
unsigned required_options(MessageKind kind) noexcept {
  switch (kind) {
    case MessageKind::get:
      return PTL_ME_OP_GET;
    case MessageKind::fetch_atomic:
    case MessageKind::swap:
      return PTL_ME_OP_PUT | PTL_ME_OP_GET;
    default:
      return PTL_ME_OP_PUT;
  }
}

// The message goes no further. PTL_OC_ACK_REQ asks only whether the target dealt with it: being
// dropped or refused counts as that (spec 3.15.1), a disabled portal does not.
[[gnu::cold]] void refuse(const Arrival& arrival, Refusal reason, ptl_ni_fail_t fail) noexcept
    LINTEL_REQUIRES(polling) {
  const bool only_completion = arrival.header.requested_ack() == PTL_OC_ACK_REQ;
  const bool is_success = only_completion && fail != PTL_NI_PT_DISABLED;
  answer_refused(arrival.physical, arrival.peer, arrival.header, reason,
                 is_success ? PTL_NI_OK : fail);
}

// A full queue has room for one such event of each entry. If that event was not taken yet, no
// second one is posted.
void post_portal_disabled(PortalEntry& portal, const ListEntry* cause) noexcept
    LINTEL_REQUIRES(portal.lock) {
  if (portal.event_queue == nullptr) return;
  ptl_event_t event{};
  event.type = PTL_EVENT_PT_DISABLED;
  event.pt_index = portal.index;
  event.user_ptr = cause != nullptr ? cause->user_ptr : nullptr;
  event.ni_fail_type = PTL_NI_OK;
  portal.event_queue->queue.post_into_own_slot(event, portal.disabled_event);
}

// A resource is exhausted (spec 2.8): the message is dropped, and with flow control the portal
// table entry is disabled.
void exhaust(const Arrival& arrival, PortalEntry& portal, const ListEntry* cause,
             Refusal reason) noexcept LINTEL_REQUIRES(polling) LINTEL_RELEASE(portal.lock) {
  const bool disables = portal.flow_controlled();
  if (disables) {
    portal.enabled = false;
    if (cause == nullptr || !cause->has(PTL_ME_EVENT_FLOWCTRL_DISABLE))
      post_portal_disabled(portal, cause);
  }
  arrival.interface.status.dropped.increment();
  portal.lock.unlock();
  refuse(arrival, reason, disables ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED);
}

void unlock_and_refuse(const Arrival& arrival, PortalEntry& portal, SharedCounter& counter,
                       Refusal reason, ptl_ni_fail_t fail) noexcept LINTEL_REQUIRES(polling)
    LINTEL_RELEASE(portal.lock) {
  portal.lock.unlock();
  counter.increment();
  refuse(arrival, reason, fail);
}

void drop(const Arrival& arrival, PortalEntry& portal, Refusal reason) noexcept
    LINTEL_REQUIRES(polling) LINTEL_RELEASE(portal.lock) {
  unlock_and_refuse(arrival, portal, arrival.interface.status.dropped, reason, PTL_NI_DROPPED);
}

void record_header(const Arrival& arrival, ListEntry& entry, const Placement& placement,
                   UnexpectedHeader& record) noexcept {
  const MessageHeader& header = arrival.header;
  NetworkInterface& interface = arrival.interface;
  record.match_bits = header.match_bits;
  record.source = arrival.initiator.source;
  record.start = entry.region.address(placement.offset);
  record.hdr_data = header.hdr_data;
  record.uid = arrival.initiator.uid;
  record.kind = header.kind;
  record.arriving = false;
  record.claimed = false;
  record.set_overflow_entry(interface.entries().index_of(entry));
  interface.unexpected_headers().set_details(record,
                                             {.mlength = placement.mlength,
                                              .rlength = header.length(),
                                              .remote_offset = header.remote_offset,
                                              .operation = header.operation,
                                              .datatype = static_cast<uint8_t>(header.datatype())});
  ++entry.unexpected_headers;
  InterfaceStatus& status = interface.status;
  const uint64_t depth = status.unexpected_depth.fetch_add(1, std::memory_order_relaxed) + 1;
  if (depth > status.unexpected_peak.load(std::memory_order_relaxed))
    status.unexpected_peak.store(depth, std::memory_order_relaxed);
}

// Applies an atomic. On the overflow list it stores the operand like a put, and a fetch is answered
// like a get, so that the application can apply the atomic later (spec 3.15.4). `fetched` may be
// null. False: PTL_NI_SEGV.
bool apply(const Arrival& arrival, const ListEntry& entry, const Placement& placement,
           std::byte* fetched) noexcept {
  const MessageHeader& header = arrival.header;
  const MemoryRegion& region = entry.region;
  const uint64_t operand_bytes = operand_length(header);
  const std::byte* data = arrival.payload + operand_bytes;
  if (entry.list == PTL_OVERFLOW_LIST) {
    if (fetched != nullptr && !region.read(placement.offset, fetched, placement.mlength))
      return false;
    return region.write(placement.offset, data, placement.mlength);
  }
  const auto datatype = header.datatype();
  return apply_atomic(header.atomic_operation(), datatype, region, placement.offset, data,
                      operand_bytes != 0 ? arrival.payload : nullptr, fetched,
                      placement.mlength / datatype_size(datatype));
}

// Moves the bytes of a put or atomic that came with its payload. False: PTL_NI_SEGV.
bool move_in(const Arrival& arrival, const ListEntry& entry, const Placement& placement) noexcept {
  if (placement.mlength == 0) return true;
  if (arrival.header.kind == MessageKind::put)
    return entry.region.write(placement.offset, arrival.payload, placement.mlength);
  return apply(arrival, entry, placement, nullptr);
}

// Hands a long message over to a Transfer.
void begin_transfer(Arrival& arrival, Transfer& transfer, PortalEntry& portal, ListEntry& entry,
                    UnexpectedHeader* unexpected, const Placement& placement,
                    const EventReservation& reservation) noexcept LINTEL_REQUIRES(polling)
    LINTEL_RELEASE(portal.lock) {
  transfer.interface = &arrival.interface;
  transfer.portal = &portal;
  transfer.entry = &entry;
  transfer.unexpected = unexpected;
  transfer.header = arrival.header;
  transfer.region_offset = placement.offset;
  transfer.mlength = placement.mlength;
  transfer.event_reserved = reservation.communication;
  transfer.unlink_reserved = reservation.unlink;
  transfer.peer.store(&arrival.peer, std::memory_order_release);
  ++arrival.peer.transfers;
  if (unexpected != nullptr) unexpected->arriving = true;
  ++entry.operations;
  ++portal.operations;
  if (entry_is_used_up(entry) && entry.state == EntryState::linked) unlink_entry(portal, entry);
  portal.lock.unlock();
  start_transfer(arrival, transfer);
}

// Sets event slots aside so that the message cannot overflow the queue (spec 2.8).
bool reserve_events(const PortalEntry& portal, const ListEntry& entry,
                    EventReservation& reservation) noexcept LINTEL_REQUIRES(portal.lock) {
  if (!portal.flow_controlled()) return true;
  EventQueue& queue = portal.event_queue->queue;
  // Also if only a failure would post an event.
  if (!entry.has(PTL_ME_EVENT_COMM_DISABLE)) {
    if (!queue.try_reserve()) return false;
    reservation.communication = true;
  }
  const bool may_unlink =
      entry.has(PTL_ME_USE_ONCE) || (entry.has(PTL_ME_MANAGE_LOCAL) && entry.min_free != 0);
  if (may_unlink && !entry.has(PTL_ME_EVENT_UNLINK_DISABLE)) {
    if (!queue.try_reserve()) {
      if (reservation.communication) queue.cancel_reservation();
      return false;
    }
    reservation.unlink = true;
  }
  return true;
}

// The data were copied, or could not be: events, counts, the end of the entry.
Outcome conclude(const Arrival& arrival, PortalEntry& portal, ListEntry& entry,
                 UnexpectedHeader* unexpected, const Placement& placement,
                 const EventReservation& reservation, bool moved) noexcept
    LINTEL_RELEASE(portal.lock) {
  Outcome outcome;
  outcome.fail = moved ? PTL_NI_OK : PTL_NI_SEGV;
  outcome.mlength = moved ? placement.mlength : 0;
  outcome.offset = placement.offset;
  outcome.list = entry.list;
  if (unexpected != nullptr && !moved)
    arrival.interface.unexpected_headers().set_outcome(*unexpected, PTL_NI_SEGV, 0);
  const Delivery delivery{arrival.header,        arrival.initiator.id,
                          arrival.initiator.uid, entry.region.address(placement.offset),
                          outcome.mlength,       outcome.fail};
  const PendingCount count =
      report_delivery(arrival.interface, portal, entry, delivery, reservation.communication);
  if (entry_is_used_up(entry)) unlink_entry(portal, entry);
  settle_entry(arrival.interface, portal, entry, reservation.unlink);
  portal.lock.unlock();
  count.apply();
  return outcome;
}

void deliver_and_reply_through(std::byte* fetched, const Arrival& arrival, PortalEntry& portal,
                               ListEntry& entry, UnexpectedHeader* unexpected,
                               const Placement& placement,
                               const EventReservation& reservation) noexcept
    LINTEL_RELEASE(portal.lock) LINTEL_REQUIRES(polling) {
  const MessageHeader& header = arrival.header;
  bool moved = true;
  if (placement.mlength != 0)
    moved = header.kind == MessageKind::get
                ? entry.region.read(placement.offset, fetched, placement.mlength)
                : apply(arrival, entry, placement, fetched);
  const Outcome outcome =
      conclude(arrival, portal, entry, unexpected, placement, reservation, moved);
  if (outcome.mlength != 0) {
    reply(arrival.physical, arrival.peer, header, outcome, fetched);
  } else {
    answer(arrival.physical, arrival.peer, header, outcome);
  }
}

// Gets, fetches and swaps. Apart from puts, whose stack is spared the buffer.
[[gnu::noinline]] void deliver_and_reply(const Arrival& arrival, PortalEntry& portal,
                                         ListEntry& entry, UnexpectedHeader* unexpected,
                                         const Placement& placement,
                                         const EventReservation& reservation) noexcept
    LINTEL_RELEASE(portal.lock) LINTEL_REQUIRES(polling) {
  static_assert(largest_reply_bytes <= sizeof ScratchBlock::bytes);
  if (std::byte on_stack[largest_fetch_on_stack]; placement.mlength <= sizeof on_stack)
    return deliver_and_reply_through(on_stack, arrival, portal, entry, unexpected, placement,
                                     reservation);
  const Loan<ScratchBlock> block(arrival.physical.scratch());
  deliver_and_reply_through(block.get().bytes, arrival, portal, entry, unexpected, placement,
                            reservation);
}

void deliver(Arrival& arrival, PortalEntry& portal, ListEntry& entry) noexcept
    LINTEL_RELEASE(portal.lock) LINTEL_REQUIRES(polling) {
  const MessageHeader& header = arrival.header;
  NetworkInterface& interface = arrival.interface;

  const Placement placement = place(entry, header);
  UnexpectedHeader* unexpected = nullptr;
  const bool keeps_header =
      entry.list == PTL_OVERFLOW_LIST && !entry.has(PTL_ME_UNEXPECTED_HDR_DISABLE);
  if (keeps_header) {
    unexpected = interface.unexpected_headers().allocate(arrival.peer.unexpected[interface.slot()]);
    if (unexpected == nullptr) return exhaust(arrival, portal, &entry, PTL_LINTEL_DROP_NO_HEADER);
  }
  EventReservation reservation;
  if (!reserve_events(portal, entry, reservation)) {
    if (keeps_header) interface.unexpected_headers().release(*unexpected);
    return exhaust(arrival, portal, &entry, PTL_LINTEL_DROP_NO_EVENT);
  }
  Transfer* transfer = nullptr;
  if ((header.flags & flag_remote_memory) != 0 && placement.mlength != 0) {
    TransferTable& transfers = arrival.physical.transfers();
    transfer = transfers.allocate(arrival.peer);
    if (transfer == nullptr) {
      if (keeps_header) interface.unexpected_headers().release(*unexpected);
      if (reservation.communication) portal.event_queue->queue.cancel_reservation();
      if (reservation.unlink) portal.event_queue->queue.cancel_reservation();
      // What one peer takes too much does not end the service for the others.
      return transfers.is_full() ? exhaust(arrival, portal, &entry, PTL_LINTEL_DROP_NO_TRANSFER)
                                 : drop(arrival, portal, PTL_LINTEL_DROP_NO_TRANSFER);
    }
  }

  if (entry.has(PTL_ME_MANAGE_LOCAL))
    entry.local_offset = next_local_offset(entry, placement.offset + placement.mlength);
  if (keeps_header) {
    record_header(arrival, entry, placement, *unexpected);
    portal.unexpected.add(*unexpected);
  }

  if (transfer != nullptr) {
    begin_transfer(arrival, *transfer, portal, entry, unexpected, placement, reservation);
  } else if (header.kind == MessageKind::get || fetches(header.kind)) {
    deliver_and_reply(arrival, portal, entry, unexpected, placement, reservation);
  } else {
    const bool moved = move_in(arrival, entry, placement);
    const Outcome outcome =
        conclude(arrival, portal, entry, unexpected, placement, reservation, moved);
    answer(arrival.physical, arrival.peer, header, outcome);
  }
}

void translate(Arrival& arrival) noexcept LINTEL_REQUIRES(polling) {
  NetworkInterface& interface = arrival.interface;
  InterfaceStatus& status = interface.status;
  PortalEntry* portal = interface.portal(arrival.header.pt_index);
  if (portal == nullptr) {
    status.dropped.increment();
    return refuse(arrival, PTL_LINTEL_DROP_NO_PORTAL, PTL_NI_DROPPED);
  }
  portal->lock.lock();
  if (!portal->allocated)
    return unlock_and_refuse(arrival, *portal, status.dropped, PTL_LINTEL_DROP_NO_PORTAL,
                             PTL_NI_DROPPED);
  if (!portal->enabled)
    return unlock_and_refuse(arrival, *portal, status.dropped, PTL_LINTEL_DROP_DISABLED,
                             PTL_NI_PT_DISABLED);
  ListEntry* entry = find_entry(arrival, portal->priority);
  if (entry == nullptr) entry = find_entry(arrival, portal->overflow);
  if (entry == nullptr) return exhaust(arrival, *portal, nullptr, PTL_LINTEL_DROP_NO_MATCH);
  if (entry->uid != PTL_UID_ANY && entry->uid != arrival.initiator.uid)
    return unlock_and_refuse(arrival, *portal, status.permission_violations, PTL_LINTEL_DROP_USER,
                             PTL_NI_PERM_VIOLATION);
  const unsigned required = required_options(arrival.header.kind);
  if ((entry->options & required) != required)
    return unlock_and_refuse(arrival, *portal, status.operation_violations,
                             PTL_LINTEL_DROP_OPERATION, PTL_NI_OP_VIOLATION);
  deliver(arrival, *portal, *entry);
}

}  // namespace

bool deliver_plain_put(PhysicalInterface& physical, Peer& peer,
                       const InboundMessage& message) noexcept {
  const MessageHeader& header = message.header;
  const uint64_t length = message.payload_length;
  if ((header.flags & ~flag_interface_mask) != 0 || header.length() != length) return false;
  NetworkInterface* const interface = physical.logical(header.interface_slot());
  if (interface == nullptr || !place_plain_put(*interface, header, message.payload, length,
                                               initiator_of(*interface, peer, header)))
    return false;
  if (header.asks_for_ack()) physical.answers().acknowledge_exactly(peer, header.cookie);
  return true;
}

void handle_request(PhysicalInterface& physical, Peer& peer,
                    const InboundMessage& message) noexcept {
  const MessageHeader& header = message.header;
  Refusal reason = PTL_LINTEL_DROP_NO_INTERFACE;
  // nullptr: the process has no such interface (any more): spec 4.2.2, dropped.
  if (NetworkInterface* interface = physical.logical(header.interface_slot());
      interface != nullptr) {
    Arrival arrival{physical,
                    *interface,
                    peer,
                    header,
                    message.payload,
                    message.payload_length,
                    initiator_of(*interface, peer, header)};
    if (is_well_formed(arrival)) return translate(arrival);
    reason = PTL_LINTEL_DROP_MALFORMED;
  }
  physical.messages_refused.increment();
  answer_refused(physical, peer, header, reason, PTL_NI_DROPPED);
}

}  // namespace lintel

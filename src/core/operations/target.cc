// A request at its target (spec 2.5, figures 2-10 and 2-11): find the entry, check permissions,
// deliver, report. Message path.
#include "core/operations/target.h"

#include <algorithm>

#include "core/objects/delivery.h"
#include "core/objects/network_interface.h"
#include "core/operations/atomics.h"
#include "core/operations/device_import.h"
#include "core/operations/plain_put.h"
#include "util/assert.h"
#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

namespace {

constexpr size_t largest_fetch_on_stack = 512;

// Offsets that PTL_ME_MAY_ALIGN allows to be rounded up to.
constexpr uint64_t placement_alignment = 8;

// Place of a message in the entry, and the number of its bytes that fit.
struct Placement {
  uint64_t offset;
  uint64_t mlength;
};

// A request that has arrived, and what was found for it, in this order.
struct Arrival {
  Target& target;
  NetworkInterface& interface;
  Peer& peer;
  const InboundMessage& message;
  const MessageHeader& header;
  InitiatorId initiator;
  PortalEntry& portal;
  ListEntry* entry = nullptr;
  Placement placement{};
  UnexpectedHeader* unexpected = nullptr;  // nullptr: none is kept
  EventReservation reservation{};
  bool was_held = false;    // the message is the first of its HeldQueue
  bool still_held = false;  // and stays there
};

bool is_atomic(MessageKind kind) noexcept {
  return kind == MessageKind::atomic || kind == MessageKind::fetch_atomic ||
         kind == MessageKind::swap;
}

// Bytes of operand in front of the payload of a swap.
uint64_t operand_length(const MessageHeader& header) noexcept {
  return header.kind == MessageKind::swap && is_single_item(header.atomic_operation())
             ? datatype_size(header.datatype())
             : 0;
}

bool is_well_formed(const InboundMessage& message) noexcept {
  const MessageHeader& header = message.header;
  const uint64_t length = header.length();
  if ((header.flags &
       ~(flag_interface_mask | flag_remote_memory | flag_unreliable | flag_tell_refusal)) != 0)
    return false;
  const bool remote = (header.flags & flag_remote_memory) != 0;
  const size_t description =
      (header.modes & names_device) != 0 ? sizeof(DeviceDescription) : sizeof(RemoteMemory);
  switch (header.kind) {
    case MessageKind::put:
      return remote ? message.payload_length % description == 0 : message.payload_length == length;
    case MessageKind::get:
      return message.payload_length % description == 0 &&
             (remote || (message.payload_length == 0 && length <= largest_reply_bytes));
    case MessageKind::atomic:
    case MessageKind::fetch_atomic:
    case MessageKind::swap: {
      const auto operation = header.atomic_operation();
      const auto datatype = header.datatype();
      if (remote || !atomic_allowed(operation, datatype, function_of(header.kind))) return false;
      const uint64_t item = datatype_size(datatype);
      if (length > largest_atomic_bytes || length % item != 0) return false;
      if (is_single_item(operation) && length > item) return false;
      return message.payload_length == length + operand_length(header);
    }
    default:
      return false;
  }
}

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

// The message goes no further. PTL_OC_ACK_REQ requests only a report that the target dealt with it:
// being dropped or refused counts as that (spec 3.15.1), a disabled portal does not.
[[gnu::cold]] void refuse(AnswerSender& answers, Peer& peer, const MessageHeader& header,
                          Refusal reason, ptl_ni_fail_t fail) noexcept LINTEL_REQUIRES(polling) {
  const bool only_completion = header.requested_ack() == PTL_OC_ACK_REQ;
  const bool is_success = only_completion && fail != PTL_NI_PT_DISABLED;
  answers.refuse(peer, header, reason, is_success ? PTL_NI_OK : fail);
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

void unlock_and_refuse(const Arrival& arrival, SharedCounter& counter, Refusal reason,
                       ptl_ni_fail_t fail) noexcept LINTEL_REQUIRES(polling)
    LINTEL_RELEASE(arrival.portal.lock) {
  arrival.portal.lock.unlock();
  counter.increment();
  refuse(arrival.target.answers(), arrival.peer, arrival.header, reason, fail);
}

// PTL_LINTEL_PT_HOLD: the message waits for room, behind earlier ones of its initiator.
[[gnu::cold]] void hold(Arrival& arrival, Refusal reason) noexcept LINTEL_REQUIRES(polling)
    LINTEL_RELEASE(arrival.portal.lock) {
  if (arrival.was_held) {
    arrival.still_held = true;
    return arrival.portal.lock.unlock();
  }
  HeldMessages& held = arrival.target.held();
  HeldQueue* const queue =
      held.add(arrival.peer, arrival.interface, arrival.portal, arrival.message);
  if (queue == nullptr) {
    static std::atomic<bool> said{false};
    log_once(said, LogLevel::error, "too many messages of %s are held: some are dropped",
             ProcessText(arrival.peer.id.nid, arrival.peer.id.pid).c_str());
    return unlock_and_refuse(arrival, arrival.interface.status.dropped, reason, PTL_NI_DROPPED);
  }
  arrival.portal.lock.unlock();
  held.tell(*queue);
}

// A resource is exhausted (spec 2.8): the message is dropped or held, and with flow control the
// portal table entry is disabled.
void exhaust(Arrival& arrival, Refusal reason) noexcept LINTEL_REQUIRES(polling)
    LINTEL_RELEASE(arrival.portal.lock) {
  if (arrival.portal.holds_messages()) return hold(arrival, reason);
  const ListEntry* const cause = arrival.entry;
  const bool disables = arrival.portal.flow_controlled();
  if (disables) {
    arrival.portal.set_enabled(false);
    if (cause == nullptr || !cause->has(PTL_ME_EVENT_FLOWCTRL_DISABLE))
      post_portal_disabled(arrival.portal, cause);
  }
  unlock_and_refuse(arrival, arrival.interface.status.dropped, reason,
                    disables ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED);
}

// Appends a header to the unexpected list.
void record_header(const Arrival& arrival) noexcept LINTEL_REQUIRES(arrival.portal.lock) {
  const MessageHeader& header = arrival.header;
  const Placement& placement = arrival.placement;
  NetworkInterface& interface = arrival.interface;
  ListEntry& entry = *arrival.entry;
  UnexpectedHeader& record = *arrival.unexpected;
  record.match_bits = header.match_bits;
  record.source = arrival.initiator.source;
  record.start = entry.region.address(placement.offset);
  record.hdr_data = header.hdr_data;
  record.uid = arrival.initiator.uid();
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
  arrival.portal.unexpected.add(record);
}

// Applies an atomic. On the overflow list it stores the operand like a put, and a fetch is answered
// like a get, so that the application can apply the atomic later (spec 3.15.4). `fetched` may be
// null. False: PTL_NI_SEGV.
bool apply(const Arrival& arrival, std::byte* fetched) noexcept {
  const MessageHeader& header = arrival.header;
  const ListEntry& entry = *arrival.entry;
  const Placement& placement = arrival.placement;
  const MemoryRegion& region = entry.region;
  const uint64_t operand_bytes = operand_length(header);
  const std::byte* data = arrival.message.payload + operand_bytes;
  if (entry.list == PTL_OVERFLOW_LIST) {
    if (fetched != nullptr && !region.read(placement.offset, fetched, placement.mlength))
      return false;
    return region.write(placement.offset, data, placement.mlength);
  }
  const auto datatype = header.datatype();
  return apply_atomic(header.atomic_operation(), datatype, region, placement.offset, data,
                      operand_bytes != 0 ? arrival.message.payload : nullptr, fetched,
                      placement.mlength / datatype_size(datatype));
}

// Moves the bytes of a message that came with its payload, or is replied to from `fetched`. False:
// PTL_NI_SEGV.
bool move(const Arrival& arrival, std::byte* fetched) noexcept {
  const MemoryRegion& region = arrival.entry->region;
  const Placement& placement = arrival.placement;
  if (placement.mlength == 0) return true;
  switch (arrival.header.kind) {
    case MessageKind::put:
      return region.write(placement.offset, arrival.message.payload, placement.mlength);
    case MessageKind::get:
      return region.read(placement.offset, fetched, placement.mlength);
    default:
      return apply(arrival, fetched);
  }
}

// Hands a long message over to a Transfer.
void begin_transfer(const Arrival& arrival, Transfer& transfer) noexcept LINTEL_REQUIRES(polling)
    LINTEL_RELEASE(arrival.portal.lock) {
  ListEntry& entry = *arrival.entry;
  transfer.place = {&arrival.interface, &arrival.portal,          &entry,
                    arrival.unexpected, arrival.placement.offset, arrival.reservation};
  transfer.header = arrival.header;
  transfer.mlength = arrival.placement.mlength;
  transfer.peer.store(&arrival.peer, std::memory_order_release);
  ++arrival.peer.long_messages.transfers;
  if (arrival.unexpected != nullptr) arrival.unexpected->arriving = true;
  ++entry.operations;
  ++arrival.portal.operations;
  if (entry_is_used_up(entry) && entry.state == EntryState::linked)
    unlink_entry(arrival.portal, entry);
  arrival.portal.lock.unlock();
  arrival.target.transfers().start(transfer, arrival.message);
}

// Sets event slots aside so that the message cannot overflow the queue (spec 2.8).
// False: what was set aside is in `reservation`.
bool reserve_events(const PortalEntry& portal, const ListEntry& entry,
                    EventReservation& reservation) noexcept LINTEL_REQUIRES(portal.lock) {
  if (!portal.flow_controlled()) return true;
  EventQueue& queue = portal.event_queue->queue;
  // The reservation is also needed if only a failure would post an event.
  if (!entry.has(PTL_ME_EVENT_COMM_DISABLE)) {
    if (!queue.try_reserve()) return false;
    reservation.communication = true;
  }
  const bool may_unlink =
      entry.has(PTL_ME_USE_ONCE) || (entry.has(PTL_ME_MANAGE_LOCAL) && entry.min_free != 0);
  if (may_unlink && !entry.has(PTL_ME_EVENT_UNLINK_DISABLE)) {
    if (!queue.try_reserve()) return false;
    reservation.unlink = true;
  }
  return true;
}

// Copies the data, through `fetched` if they are replied with. Then events, counts, the end of the
// entry, the answer.
void deliver_through(std::byte* fetched, const Arrival& arrival) noexcept
    LINTEL_RELEASE(arrival.portal.lock) LINTEL_REQUIRES(polling) {
  NetworkInterface& interface = arrival.interface;
  ListEntry& entry = *arrival.entry;
  const bool moved = move(arrival, fetched);
  if (!moved) [[unlikely]]
    entry.region.explain_fault(arrival.placement.offset, arrival.placement.mlength);
  const Outcome outcome{.fail = moved ? PTL_NI_OK : PTL_NI_SEGV,
                        .mlength = moved ? arrival.placement.mlength : 0,
                        .offset = arrival.placement.offset,
                        .list = entry.list};
  if (arrival.unexpected != nullptr && !moved)
    interface.unexpected_headers().set_outcome(*arrival.unexpected, PTL_NI_SEGV, 0);
  const PendingCount count =
      report_delivery(interface, arrival.portal, entry,
                      {arrival.header, arrival.initiator.id(), arrival.initiator.uid(),
                       entry.region.address(outcome.offset), outcome.mlength, outcome.fail},
                      arrival.reservation.communication);
  if (entry_is_used_up(entry)) unlink_entry(arrival.portal, entry);
  settle_entry(interface, arrival.portal, entry, arrival.reservation.unlink);
  arrival.portal.lock.unlock();
  count.apply();
  arrival.target.answers().answer(arrival.peer, arrival.header, outcome, fetched);
}

// Gets, fetches and swaps. Apart from puts, whose stack is spared the buffer.
[[gnu::noinline]] void deliver_and_reply(const Arrival& arrival) noexcept
    LINTEL_RELEASE(arrival.portal.lock) LINTEL_REQUIRES(polling) {
  if (std::byte on_stack[largest_fetch_on_stack]; arrival.placement.mlength <= sizeof on_stack)
    return deliver_through(on_stack, arrival);
  const Loan<ScratchBlock> block(arrival.target.scratch());
  deliver_through(block.get().bytes, arrival);
}

// Gives back what was set aside for a message that is not delivered.
void release_reserved(Arrival& arrival) noexcept LINTEL_REQUIRES(arrival.portal.lock) {
  if (arrival.unexpected != nullptr)
    arrival.interface.unexpected_headers().release(*arrival.unexpected);
  if (arrival.reservation.communication) arrival.portal.event_queue->queue.cancel_reservation();
  if (arrival.reservation.unlink) arrival.portal.event_queue->queue.cancel_reservation();
}

void deliver(Arrival& arrival) noexcept LINTEL_RELEASE(arrival.portal.lock)
    LINTEL_REQUIRES(polling) {
  LINTEL_ASSERT(arrival.entry != nullptr && arrival.unexpected == nullptr);
  const MessageHeader& header = arrival.header;
  NetworkInterface& interface = arrival.interface;
  ListEntry& entry = *arrival.entry;

  arrival.placement = place(entry, header);
  if (entry.list == PTL_OVERFLOW_LIST && !entry.has(PTL_ME_UNEXPECTED_HDR_DISABLE)) {
    arrival.unexpected =
        interface.unexpected_headers().allocate(arrival.peer.unexpected[interface.slot()]);
    if (arrival.unexpected == nullptr) return exhaust(arrival, PTL_LINTEL_DROP_NO_HEADER);
  }
  if (!reserve_events(arrival.portal, entry, arrival.reservation)) {
    release_reserved(arrival);
    return exhaust(arrival, PTL_LINTEL_DROP_NO_EVENT);
  }
  Transfer* transfer = nullptr;
  if ((header.flags & flag_remote_memory) != 0 && arrival.placement.mlength != 0) {
    TransferTable& transfers = arrival.target.transfers().table();
    transfer = transfers.allocate(arrival.peer);
    if (transfer == nullptr) {
      release_reserved(arrival);
      if (transfers.is_full()) return exhaust(arrival, PTL_LINTEL_DROP_NO_TRANSFER);
      // One peer that takes too many transfers does not end the service for the others.
      return unlock_and_refuse(arrival, interface.status.dropped, PTL_LINTEL_DROP_NO_TRANSFER,
                               PTL_NI_DROPPED);
    }
  }

  if (entry.has(PTL_ME_MANAGE_LOCAL))
    entry.local_offset =
        next_local_offset(entry, arrival.placement.offset + arrival.placement.mlength);
  if (arrival.unexpected != nullptr) record_header(arrival);
  if (transfer != nullptr) return begin_transfer(arrival, *transfer);
  if (header.kind == MessageKind::put || header.kind == MessageKind::atomic)
    return deliver_through(nullptr, arrival);
  deliver_and_reply(arrival);
}

void translate(Arrival& arrival) noexcept LINTEL_REQUIRES(polling) {
  InterfaceStatus& status = arrival.interface.status;
  arrival.portal.lock.lock();
  if (!arrival.portal.allocated)
    return unlock_and_refuse(arrival, status.dropped, PTL_LINTEL_DROP_NO_PORTAL, PTL_NI_DROPPED);
  if (!arrival.portal.enabled) {
    if (arrival.was_held) return hold(arrival, PTL_LINTEL_DROP_DISABLED);
    return unlock_and_refuse(arrival, status.dropped, PTL_LINTEL_DROP_DISABLED, PTL_NI_PT_DISABLED);
  }
  if (arrival.portal.held_initiators != 0 && !arrival.was_held &&
      HeldMessages::find(arrival.peer, arrival.portal) != nullptr)
    return hold(arrival, PTL_LINTEL_DROP_NO_MATCH);
  ListEntry* entry = find_entry(arrival, arrival.portal.priority);
  if (entry == nullptr) entry = find_entry(arrival, arrival.portal.overflow);
  if (entry == nullptr) return exhaust(arrival, PTL_LINTEL_DROP_NO_MATCH);
  arrival.entry = entry;
  if (entry->uid != PTL_UID_ANY && entry->uid != arrival.initiator.uid())
    return unlock_and_refuse(arrival, status.permission_violations, PTL_LINTEL_DROP_USER,
                             PTL_NI_PERM_VIOLATION);
  const unsigned required = required_options(arrival.header.kind);
  if ((entry->options & required) != required)
    return unlock_and_refuse(arrival, status.operation_violations, PTL_LINTEL_DROP_OPERATION,
                             PTL_NI_OP_VIOLATION);
  deliver(arrival);
}

}  // namespace

void Target::handle_request(NetworkInterface* interface, Peer& peer,
                            const InboundMessage& message) noexcept {
  const MessageHeader& header = message.header;
  const bool known = interface != nullptr;  // spec 4.2.2: dropped if not
  if (!known || !is_well_formed(message)) {
    refused_.messages.increment();
    return answers_.refuse(peer, header,
                           known ? PTL_LINTEL_DROP_MALFORMED : PTL_LINTEL_DROP_NO_INTERFACE,
                           PTL_NI_DROPPED);
  }
  PortalEntry* const portal = interface->portal(header.pt_index);
  if (portal == nullptr) {
    interface->status.dropped.increment();
    return refuse(answers_, peer, header, PTL_LINTEL_DROP_NO_PORTAL, PTL_NI_DROPPED);
  }
  Arrival arrival{.target = *this,
                  .interface = *interface,
                  .peer = peer,
                  .message = message,
                  .header = header,
                  .initiator = initiator_of(*interface, peer, header.initiator_rank),
                  .portal = *portal};
  translate(arrival);
}

bool Target::deliver_held(HeldQueue& queue, const InboundMessage& message) noexcept {
  const MessageHeader& header = message.header;
  Arrival arrival{.target = *this,
                  .interface = *queue.interface,
                  .peer = *queue.peer,
                  .message = message,
                  .header = header,
                  .initiator = initiator_of(*queue.interface, *queue.peer, header.initiator_rank),
                  .portal = *queue.portal,
                  .was_held = true};
  translate(arrival);
  if (transfers_.has_batch()) transfers_.fetch_batch();
  return !arrival.still_held;
}

unsigned Target::deliver_held() noexcept {
  return held_.deliver_due([this](HeldQueue& queue, const InboundMessage& message) {
    polling.assert_held();
    return deliver_held(queue, message);
  });
}

void Target::drop_held(const NetworkInterface& interface) noexcept {
  held_.drop_all_of(interface, [this](Peer& peer, const MessageHeader& header) {
    polling.assert_held();
    refuse(answers_, peer, header, PTL_LINTEL_DROP_NO_INTERFACE, PTL_NI_DROPPED);
  });
}

}  // namespace lintel

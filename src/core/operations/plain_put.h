// The common case at the target: a put that came with its payload and fits an entry of the priority
// list at the requested offset. handle_request() does the same for every message. Message path.
#pragma once

#include "core/objects/delivery.h"
#include "core/objects/network_interface.h"
#include "core/operations/peer.h"
#include "util/lock.h"

namespace lintel {

// Sender of a message, as identified on the interface.
struct InitiatorId {
  ptl_process_t id;
  uint64_t source;  // for matching, see match_criteria.h
  ptl_uid_t uid;
};

[[nodiscard]] inline InitiatorId initiator_of(const NetworkInterface& interface, const Peer& peer,
                                              const MessageHeader& header) noexcept {
  InitiatorId initiator{{}, 0, peer.link->uid};
  if (interface.logical()) {
    initiator.id.rank = interface.map.rank_of(peer.id, header.initiator_rank);
    initiator.source = source_of_rank(initiator.id.rank);
  } else {
    initiator.id.phys.nid = peer.id.nid;
    initiator.id.phys.pid = peer.id.pid;
    initiator.source = source_of(peer.id);
  }
  return initiator;
}

// Matches, delivers and reports a put without flags, whose payload has the length that its header
// says (spec 2.5). The caller acknowledges. False: nothing was done, or a part of the payload was
// written that handle_request() writes again; it finds out what is special.
[[nodiscard, gnu::always_inline]] inline bool place_plain_put(
    NetworkInterface& interface, const MessageHeader& header, const std::byte* payload,
    uint64_t length, const InitiatorId& initiator) noexcept LINTEL_REQUIRES(polling) {
  PortalEntry* const portal = interface.portal(header.pt_index);
  if (portal == nullptr) [[unlikely]]
    return false;
  CountingEvent* counter = nullptr;
  uint64_t amount = 1;
  {
    const LockGuard guard(portal->lock);
    // A portal table entry that is not allocated is not enabled.
    if (!portal->enabled) [[unlikely]]
      return false;
    auto* const entry = static_cast<ListEntry*>(
        interface.matching() ? portal->priority.find_any(header.match_bits, initiator.source)
                             : portal->priority.head());
    if (entry == nullptr || !entry->takes_plain_puts ||
        (entry->uid != PTL_UID_ANY && entry->uid != initiator.uid) ||
        !entry->region.contains(header.remote_offset, length)) [[unlikely]]
      return false;
    // The memory of the entry is contiguous, and of the host.
    const bool posts = delivery_event_wanted(*portal, *entry);
    const bool reserves = posts && portal->flow_controlled();
    if (reserves && !portal->event_queue->queue.try_reserve()) return false;
    if (!entry->region.write_plain(header.remote_offset, payload, length)) [[unlikely]] {
      if (reserves) portal->event_queue->queue.cancel_reservation();
      return false;
    }
    if (posts) {
      // One instruction takes the slot, and the reservation with it.
      portal->event_queue->queue.post_in_round(
          [&] {
            return delivery_event(
                interface, *entry,
                {header, initiator.id, initiator.uid,
                 entry->region.contiguous_address(header.remote_offset), length, PTL_NI_OK},
                MessageKind::put);
          },
          reserves);
    }
    if (entry->has(PTL_ME_EVENT_CT_COMM)) {
      counter = entry->counter;
      if (entry->has(PTL_ME_EVENT_CT_BYTES)) amount = length;
    }
    if (entry->has(PTL_ME_USE_ONCE)) {
      portal->priority.remove(*entry);
      free_entry(interface, *entry, false);
    }
  }
  if (counter != nullptr) counter->add_success(amount);
  return true;
}

}  // namespace lintel

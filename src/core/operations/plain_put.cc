#include "core/operations/plain_put.h"

#include <mutex>

#include "core/objects/delivery.h"
#include "core/objects/network_interface.h"
#include "util/guarded_memory.h"

namespace lintel {

namespace {

struct Initiator {
  ptl_process_t id;
  uint64_t source;  // for matching
};

Initiator initiator_of(const NetworkInterface& interface, const Peer& peer,
                       const MessageHeader& header) noexcept {
  Initiator initiator{};
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

}  // namespace

bool deliver_plain_put(PhysicalInterface& physical, Peer& peer,
                       const InboundMessage& message) noexcept {
  const MessageHeader& header = message.header;
  const uint64_t length = message.payload_length;
  if ((header.flags & ~flag_interface_mask) != 0 || header.length() != length) return false;
  NetworkInterface* const interface = physical.logical(header.interface_slot());
  if (interface == nullptr) return false;
  PortalEntry* const portal = interface->portal(header.pt_index);
  if (portal == nullptr) return false;
  const Initiator initiator = initiator_of(*interface, peer, header);
  const ptl_uid_t uid = peer.link->uid;
  CountingEvent* counter = nullptr;
  uint64_t amount = 1;
  {
    std::lock_guard guard(portal->lock);
    if (!portal->allocated || !portal->enabled) return false;
    auto* const entry = static_cast<ListEntry*>(
        interface->matching() ? portal->priority.find_any(header.match_bits, initiator.source)
                              : portal->priority.head());
    if (entry == nullptr || !entry->takes_plain_puts ||
        (entry->uid != PTL_UID_ANY && entry->uid != uid) ||
        !entry->region.contains(header.remote_offset, length))
      return false;
    const bool posts = delivery_event_wanted(*portal, *entry);
    const bool reserves = posts && portal->flow_controlled();
    if (reserves && !portal->event_queue->queue.try_reserve()) return false;
    if (!entry->region.write(header.remote_offset, message.payload, length)) [[unlikely]] {
      if (reserves) portal->event_queue->queue.cancel_reservation();
      return false;
    }
    if (posts) {
      const ptl_event_t event =
          delivery_event(*interface, *entry,
                         {header, initiator.id, uid, entry->region.address(header.remote_offset),
                          length, PTL_NI_OK},
                         MessageKind::put);
      // One instruction takes the slot, and the reservation with it.
      portal->event_queue->queue.post(event, reserves);
    }
    if (entry->has(PTL_ME_EVENT_CT_COMM)) counter = entry->counter;
    if (entry->has(PTL_ME_EVENT_CT_BYTES)) amount = length;
    if (entry->has(PTL_ME_USE_ONCE)) {
      portal->priority.remove(*entry);
      free_entry(*interface, *entry, false);
    }
  }
  if (counter != nullptr) counter->add_success(amount);
  if (header.asks_for_ack()) physical.answers().acknowledge_exactly(peer, header.cookie);
  return true;
}

}  // namespace lintel

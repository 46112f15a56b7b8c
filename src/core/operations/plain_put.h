// The common case at the target: a put that came with its payload and fits an entry of the priority
// list at the requested offset. handle_request() does the same for every message. Message path.
#pragma once

#include <bit>

#include "core/objects/delivery.h"
#include "core/objects/network_interface.h"
#include "core/operations/peer.h"
#include "util/lock.h"

namespace lintel {

// Sender of a message, as identified on the interface.
struct InitiatorId {
  uint64_t source;  // id() in one word, for matching
  const Peer& peer;
  [[nodiscard]] ptl_process_t id() const noexcept { return std::bit_cast<ptl_process_t>(source); }
  [[nodiscard]] ptl_uid_t uid() const noexcept { return peer.route.link->uid; }
};

// `rank`: as the header says.
[[nodiscard]] inline InitiatorId initiator_of(const NetworkInterface& interface, const Peer& peer,
                                              uint32_t rank) noexcept {
  return {interface.logical() ? source_of_rank(interface.map.rank_of(peer.id, rank))
                              : source_of(peer.id),
          peer};
}

// Matches, delivers and reports a put without flags, whose payload has the length that its header
// says (spec 2.5). `header`: as HeaderWords. The caller acknowledges. False: nothing was done, or a
// part of the payload was written that handle_request() writes again; it finds out what is special.
template <typename Header>
[[nodiscard, gnu::always_inline]] inline bool place_plain_put(NetworkInterface& interface,
                                                              const Header header,
                                                              uint16_t pt_index, uint64_t length,
                                                              const std::byte* payload,
                                                              const InitiatorId& initiator) noexcept
    LINTEL_REQUIRES(polling) {
  PortalEntry* const portal = interface.portal(pt_index);
  if (portal == nullptr) [[unlikely]]
    return false;
  CountingEvent* counter = nullptr;
  uint64_t amount = 1;
  {
    const LockGuard guard(portal->lock);
    // A portal table entry that is not allocated is not enabled.
    if (!portal->takes_plain_puts) [[unlikely]]
      return false;
    uint64_t match_bits = 0;
    MatchNode* node = portal->priority.head();
    if (interface.matching()) {
      match_bits = header.match_bits();
      node = portal->priority.find_any(match_bits, initiator.source);
    }
    if (node == nullptr) [[unlikely]]
      return false;
    auto* const entry = static_cast<ListEntry*>(node);
    const uint64_t offset = header.remote_offset();
    if (!entry->takes_plain_puts || (entry->uid != PTL_UID_ANY && entry->uid != initiator.uid()) ||
        !entry->region.contains(offset, length)) [[unlikely]]
      return false;
    // The memory of the entry is contiguous, and of the host.
    EventQueueObject* const events =
        entry->has(PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE) ? nullptr
                                                                             : portal->event_queue;
    const bool reserves = events != nullptr && portal->flow_controlled();
    if (reserves && !events->queue.try_reserve()) return false;
    if (!entry->region.write_plain(offset, payload, length)) [[unlikely]] {
      if (reserves) events->queue.cancel_reservation();
      return false;
    }
    if (events != nullptr) {
      // One instruction takes the slot, and the reservation with it.
      events->queue.post_in_round(
          [&] {
            return PutEvent{.start = entry->region.contiguous_address(offset),
                            .user_ptr = entry->user_ptr,
                            .hdr_data = header.hdr_data(),
                            .match_bits = match_bits,
                            .length = length,
                            .remote_offset = offset,
                            .initiator = initiator.source,
                            .uid = initiator.uid(),
                            .pt_index = pt_index};
          },
          reserves);
    }
    if (entry->has(PTL_ME_EVENT_CT_COMM | PTL_ME_USE_ONCE)) {
      if (entry->has(PTL_ME_EVENT_CT_COMM)) {
        counter = entry->counter;
        if (entry->has(PTL_ME_EVENT_CT_BYTES)) amount = length;
      }
      if (entry->has(PTL_ME_USE_ONCE)) {
        portal->priority.remove(*entry);
        spare_entry(*portal, *entry);
      }
    }
  }
  if (counter != nullptr) counter->add_success(amount);
  return true;
}

}  // namespace lintel

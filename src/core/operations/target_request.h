// A request at its target: translation, delivery, answering (spec 2.5, 3.11, 3.12, 4.2.2). Message
// path.
#pragma once

#include "core/objects/network_interface.h"
#include "core/operations/physical_interface.h"
#include "transport/polling.h"

namespace lintel {

// Who sent a message, as the interface names it.
struct Initiator {
  ptl_process_t id;
  uint64_t source;  // for matching, see match_criteria.h
  ptl_uid_t uid;
};

[[nodiscard]] inline Initiator initiator_of(const NetworkInterface& interface, const Peer& peer,
                                            const MessageHeader& header) noexcept {
  Initiator initiator{{}, 0, peer.link->uid};
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

// A request that has arrived.
struct Arrival {
  PhysicalInterface& physical;
  NetworkInterface& interface;
  Peer& peer;
  const MessageHeader& header;
  const std::byte* payload;
  uint32_t payload_length;
  Initiator initiator;
};

// A put of the common case; see place_plain_put(). Acknowledges it.
[[nodiscard]] bool deliver_plain_put(PhysicalInterface& physical, Peer& peer,
                                     const InboundMessage& message) noexcept
    LINTEL_REQUIRES(polling);
void handle_request(PhysicalInterface& physical, Peer& peer, const InboundMessage& message) noexcept
    LINTEL_REQUIRES(polling);

}  // namespace lintel

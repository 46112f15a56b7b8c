#include "core/operations/plain_put.h"

namespace lintel {

namespace {

Initiator initiator_of(const NetworkInterface& interface, const Peer& peer,
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

}  // namespace lintel

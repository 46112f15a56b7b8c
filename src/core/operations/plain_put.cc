#include "core/operations/plain_put.h"

namespace lintel {

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

// A request at its target: translation, delivery, answering (spec 2.5, 3.11, 3.12, 4.2.2). Message
// path, the poll token held.
#pragma once

#include "core/operations/physical_interface.h"

namespace lintel {

// A request that has arrived, with where it came from as the interface names it.
struct Arrival {
  PhysicalInterface& physical;
  NetworkInterface& interface;
  Peer& peer;
  const MessageHeader& header;
  const std::byte* payload;
  uint32_t payload_length;
  ptl_process_t initiator;
  uint64_t source;  // for matching, see match_criteria.h
  ptl_uid_t uid;
};

void handle_request(PhysicalInterface& physical, Peer& peer,
                    const InboundMessage& message) noexcept;

}  // namespace lintel

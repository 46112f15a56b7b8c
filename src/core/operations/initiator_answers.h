// Answers as they arrive at the initiator (spec 4.2.2), and operations whose peer is gone. Message
// path.
#pragma once

#include "core/operations/physical_interface.h"
#include "transport/polling.h"

namespace lintel {

void handle_ack(PhysicalInterface& interface, Peer& peer, const MessageHeader& header) noexcept
    LINTEL_REQUIRES(polling);
void handle_ack_batch(PhysicalInterface& interface, Peer& peer,
                      const InboundMessage& message) noexcept LINTEL_REQUIRES(polling);
void handle_reply(PhysicalInterface& interface, Peer& peer, const InboundMessage& message) noexcept
    LINTEL_REQUIRES(polling);
void handle_reply_data(PhysicalInterface& interface, Peer& peer,
                       const InboundMessage& message) noexcept LINTEL_REQUIRES(polling);
void handle_data_request(PhysicalInterface& interface, Peer& peer,
                         const MessageHeader& header) noexcept LINTEL_REQUIRES(polling);
// The peer is gone: its operations end as PTL_NI_UNDELIVERABLE.
void fail_counted_puts(Peer& peer) noexcept LINTEL_REQUIRES(polling);
void fail_operation(PhysicalInterface& interface, Operation& operation) noexcept
    LINTEL_REQUIRES(polling);

// Sends queued data messages of a long put until all are sent (true) or there is no room.
[[nodiscard]] bool send_request_data(Peer& peer, Operation& operation) noexcept
    LINTEL_REQUIRES(polling) LINTEL_REQUIRES(peer.send_lock);

}  // namespace lintel

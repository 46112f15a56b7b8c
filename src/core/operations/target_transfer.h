// Messages at the target that are longer than one message of the transport (spec 2.6). Message
// path.
#pragma once

#include "core/operations/target_request.h"
#include "transport/polling.h"

namespace lintel {

// Starts moving the payload of a message that matched and is too long for one message. The lock of
// the portal table entry is not held; entry and portal count the operation already.
void start_transfer(Arrival& arrival, Transfer& transfer) noexcept LINTEL_REQUIRES(polling);
// Handles data that were requested for a long put.
void handle_transfer_data(PhysicalInterface& physical, Peer& peer,
                          const InboundMessage& message) noexcept LINTEL_REQUIRES(polling);
// Moves one slice of each active transfer, so that a long transfer does not delay messages. Ends
// those that are complete. Returns their number.
unsigned advance_transfers(PhysicalInterface& physical) noexcept LINTEL_REQUIRES(polling);
// Ends transfers that have only waited until the transport no longer refers to their memory.
unsigned end_released_transfers(PhysicalInterface& physical) noexcept LINTEL_REQUIRES(polling);
// See MessageSink::on_remote_done().
void end_remote_access(PhysicalInterface& physical, Link& link, uint32_t token,
                       RemoteResult result) noexcept LINTEL_REQUIRES(polling);
// Fetches what start_transfer() has put off. To be called before any other message is handled, so
// that data arrive in the order of their messages.
void fetch_batch(PhysicalInterface& physical) noexcept LINTEL_REQUIRES(polling);
// Sends queued data messages and the reply of a long get. True: all are sent.
[[nodiscard]] bool send_transfer_data(PhysicalInterface& physical, Peer& peer,
                                      Transfer& transfer) noexcept LINTEL_REQUIRES(polling)
    LINTEL_REQUIRES(peer.send_lock);
// The peer is gone: the transfer ends with a failed event at this side.
void fail_transfer(PhysicalInterface& physical, Transfer& transfer) noexcept
    LINTEL_REQUIRES(polling);

}  // namespace lintel

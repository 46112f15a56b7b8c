// The initiator's side of an operation: starting it and reporting how it ended (spec 3.13.2, 3.15).
// Message path.
#pragma once

#include "core/operations/operation.h"
#include "core/operations/physical_interface.h"
#include "portals4.h"
#include "transport/transport.h"

namespace lintel {

class NetworkInterface;

// Starts the operation and fills in the rest of the request's header. Any thread.
// PTL_OK: it will end with its events. PTL_ARG_INVALID: the rank is not in the map.
// Waits while the pool has no free operation (most_operations). A triggered operation cannot wait;
// it ends with PTL_NI_UNDELIVERABLE.
[[nodiscard]] int start_request(NetworkInterface& interface, Request& request) noexcept;
// Nothing was sent and nothing will be: the operation ends here.
void report_local_failure(NetworkInterface& interface, const Request& request,
                          ptl_ni_fail_t fail) noexcept;

// --- from the send queue
// Sends the first message of a queued operation (peer.send_lock held).
[[nodiscard]] SendStatus send_operation(PhysicalInterface& interface, Peer& peer,
                                        Operation& operation) noexcept;
// Reports what became of it (no lock held).
void report_queued_send(PhysicalInterface& interface, Operation& operation) noexcept;
// The operation was never sent and ends with `fail`.
void fail_unsent_operation(PhysicalInterface& interface, Operation& operation,
                           ptl_ni_fail_t fail) noexcept;

}  // namespace lintel

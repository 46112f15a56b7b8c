// The initiator's side of an operation: starting it and reporting how it ended (spec 3.13.2, 3.15).
// Message path.
#pragma once

#include "core/objects/network_interface.h"
#include "core/operations/initiator_events.h"
#include "core/operations/operation.h"
#include "core/operations/physical_interface.h"
#include "portals4.h"
#include "transport/transport.h"

namespace lintel {

// --- parts of start_request()
// The program asks for an acknowledgment that nothing reports.
[[gnu::cold, gnu::noinline]] void warn_of_unheard_acknowledgement() noexcept;
// An eager put whose peer is known.
[[nodiscard]] int start_put(NetworkInterface& interface, Peer& peer, Request& request) noexcept;
// The longest put to the own process that PtlPut delivers, reports and acknowledges itself.
inline constexpr size_t largest_put_to_self = 64;
// An eager put to `self`, the own process. Sends it as start_put() if it is too long, or an
// earlier message is in flight, or another thread polls, or the target does more than usual.
[[nodiscard]] int put_to_self(NetworkInterface& interface, Peer& self, Request& request) noexcept;
// Any request.
[[nodiscard]] int start_in_general(NetworkInterface& interface, Peer& peer,
                                   Request& request) noexcept;
// The last operation of the descriptor went to another peer.
[[nodiscard]] int start_to_another(NetworkInterface& interface, MemoryDescriptor& descriptor,
                                   ProcessId target, Request& request) noexcept;

// A put that travels with its header.
[[nodiscard]] inline bool is_eager_put(const Peer& peer, const Request& request) noexcept {
  return request.header.kind == MessageKind::put &&
         request.header.length() <= peer.eager_put_bytes.load(std::memory_order_relaxed) &&
         (request.put.descriptor->options & PTL_MD_UNRELIABLE) == 0 &&
         request.put.descriptor->region.is_contiguous();
}
[[nodiscard, gnu::always_inline]] inline int start_to(NetworkInterface& interface, Peer& peer,
                                                      Request& request) noexcept {
  if (!is_eager_put(peer, request)) return start_in_general(interface, peer, request);
  return peer.in_process_sends != nullptr ? put_to_self(interface, peer, request)
                                          : start_put(interface, peer, request);
}

// Starts the operation and fills in the rest of the request's header. Any thread.
// PTL_OK: it will end with its events. PTL_ARG_INVALID: the rank is not in the map.
// Waits for a free operation (most_operations) as long as others end. If none does, and where it is
// triggered, which cannot wait, it ends with PTL_NI_UNDELIVERABLE.
[[nodiscard, gnu::always_inline]] inline int start_request(NetworkInterface& interface,
                                                           Request& request) noexcept {
  ProcessId target{request.target.phys.nid, request.target.phys.pid};
  if (interface.logical() && !interface.map.find(request.target.rank, &target))
    return PTL_ARG_INVALID;
  MemoryDescriptor& descriptor =
      *(request.put.descriptor != nullptr ? request.put : request.get).descriptor;
  // An acknowledgement is sent only if something is to be posted or counted (spec 3.15.2).
  if (!descriptor_listens(descriptor)) {
    if (request.header.asks_for_ack()) [[unlikely]]
      warn_of_unheard_acknowledgement();
    request.header.ask_for_no_ack();
  }
  Peer* const peer = descriptor.recent_peer.load(std::memory_order_acquire);
  if (peer == nullptr || peer->id != target || peer->failed.load(std::memory_order_acquire))
      [[unlikely]]
    return start_to_another(interface, descriptor, target, request);
  return start_to(interface, *peer, request);
}

// Nothing was sent and nothing will be: the operation ends here.
void report_local_failure(const Request& request, ptl_ni_fail_t fail) noexcept;

// --- from the send queue
// Sends the first message of a queued operation.
[[nodiscard]] SendStatus send_operation(PhysicalInterface& interface, Peer& peer,
                                        Operation& operation) noexcept
    LINTEL_REQUIRES(peer.send_lock);
// Reports what became of it. No lock is held.
void report_queued_send(PhysicalInterface& interface, Operation& operation) noexcept;
// The operation was never sent and ends with `fail`.
void fail_unsent_operation(PhysicalInterface& interface, Operation& operation,
                           ptl_ni_fail_t fail) noexcept;

}  // namespace lintel

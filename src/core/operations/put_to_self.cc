// A short put of a process to itself: PtlPut delivers, reports and acknowledges it. Message path.
#include "core/objects/network_interface.h"
#include "core/operations/physical_interface.h"
#include "core/operations/plain_put.h"
#include "util/guarded_memory.h"

namespace lintel {

namespace {

// The two places may overlap. Where a copy does not allow that, the payload is copied twice.
constexpr bool copies_to_self_twice = largest_overlapping_copy < largest_put_to_self;

InitiatorId initiator_is_self(const NetworkInterface& interface, const Peer& self) noexcept {
  const ptl_process_t id = interface.own_id();
  return {id, interface.logical() ? source_of_rank(id.rank) : source_of(self.id), self.link->uid};
}

// Events and counts that are not both full events of a put.
[[gnu::noinline]] void report_apart(const Request& request, bool reports_send) noexcept {
  MemoryDescriptor& put = *request.put.descriptor;
  const bool asks_for_ack = request.header.asks_for_ack();
  if (reports_send) report_send(put, request, PTL_NI_OK);
  if (asks_for_ack) report_ack(put, request, whole_result(request));
}

[[gnu::always_inline]] inline bool deliver_to_self(NetworkInterface& interface, Peer& self,
                                                   const Request& request) noexcept {
  PhysicalInterface& physical = interface.physical();
  Poller& poller = physical.poller();
  MemoryDescriptor& put = *request.put.descriptor;
  const uint64_t length = request.header.length();
  if (length > largest_put_to_self || self.queue_length.load(std::memory_order_relaxed) != 0 ||
      !poller.begin_delivery_to_self()) [[unlikely]]
    return false;
  const std::byte* payload = put.region.contiguous_address(request.put_offset);
  [[maybe_unused]] std::byte copy[largest_put_to_self];
  if constexpr (copies_to_self_twice) {
    if (!guarded_copy(copy, payload, length)) {
      poller.end_delivery_to_self();
      return false;
    }
    payload = copy;
  }
  const bool delivered = place_plain_put(interface, request.header, payload, length,
                                         initiator_is_self(interface, self));
  if (delivered) [[likely]] {
    physical.received.count(MessageKind::put, length);
    self.sent.count(MessageKind::put, length);
    // The descriptor stays until the end of the round, also if a thread that has seen the first
    // event releases it.
    const bool reports_send = put.reports_send();
    if (put.event_queue == nullptr && !reports_send) {
      if (request.header.asks_for_ack())
        count_of(put, PTL_MD_EVENT_CT_ACK, request.header, length).apply();
    } else if (!report_put_and_ack(put, request)) {
      report_apart(request, reports_send);
    }
  }
  poller.end_delivery_to_self();
  return delivered;
}

[[gnu::noinline]] int send_to_self(NetworkInterface& interface, Peer& self,
                                   Request& request) noexcept {
  if (!Initiator::start_eager_put(interface, self, request)) [[unlikely]]
    return interface.initiator().start_in_general(interface, self, request);
  interface.initiator().kick_in_process(self);
  return PTL_OK;
}

}  // namespace

int put_to_self(NetworkInterface& interface, Peer& self, Request& request) noexcept {
  return deliver_to_self(interface, self, request) ? PTL_OK
                                                   : send_to_self(interface, self, request);
}

}  // namespace lintel

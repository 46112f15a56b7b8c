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
  return {interface.logical() ? source_of_rank(interface.map.own_rank()) : source_of(self.id),
          self};
}

// Events and counts that are not both full events of a put.
[[gnu::noinline]] void report_apart(const PutCall& call, bool reports_send) noexcept
    LINTEL_REQUIRES(polling) {
  const AnswerResult whole = whole_result(call.length, call.remote_offset);
  if (reports_send) report_send(call.put, call.user_ptr, whole);
  if (call.requested != PTL_NO_ACK_REQ)
    post_ack(call.put, call.user_ptr, call.requested, whole).apply();
}

[[gnu::noinline]] int send_to_self(NetworkInterface& interface, Peer& self,
                                   Request& request) noexcept {
  if (!Initiator::start_eager_put(interface, self, request)) [[unlikely]]
    return interface.initiator().start_in_general(interface, self, request);
  interface.initiator().kick_in_process(self);
  return PTL_OK;
}

// The header of a put that is not sent.
class CallWords {
 public:
  explicit CallWords(const PutCall& call) noexcept : call_(call) {}
  [[nodiscard]] uint64_t match_bits() const noexcept { return call_.match_bits; }
  [[nodiscard]] uint64_t remote_offset() const noexcept { return call_.remote_offset; }
  [[nodiscard]] uint64_t hdr_data() const noexcept { return call_.hdr_data; }

 private:
  const PutCall& call_;
};

}  // namespace

bool deliver_to_self(NetworkInterface& interface, Peer& self, const PutCall& call) noexcept {
  PhysicalInterface& physical = interface.physical();
  Poller& poller = physical.poller();
  MemoryDescriptor& put = call.put;
  const uint64_t length = call.length;
  if (length > largest_put_to_self ||
      self.queue_counts.length.load(std::memory_order_relaxed) != 0 ||
      !poller.begin_delivery_to_self()) [[unlikely]]
    return false;
  const std::byte* payload = put.region.contiguous_address(call.put_offset);
  [[maybe_unused]] std::byte copy[largest_put_to_self];
  if constexpr (copies_to_self_twice) {
    if (!guarded_copy(copy, payload, length)) {
      poller.end_delivery_to_self();
      return false;
    }
    payload = copy;
  }
  const bool delivered =
      place_plain_put(interface, CallWords(call), static_cast<uint16_t>(call.pt_index), length,
                      payload, initiator_is_self(interface, self));
  if (delivered) [[likely]] {
    physical.received.count(MessageKind::put, length);
    self.sent.count(MessageKind::put, length);
    // The descriptor stays until the end of the round, also if a thread that has seen the first
    // event releases it.
    const bool reports_send = put.reports_send();
    if (put.event_queue == nullptr && !reports_send) {
      if (call.requested != PTL_NO_ACK_REQ)
        count_of(put, PTL_MD_EVENT_CT_ACK, call.requested, length).apply();
    } else if (!report_put_and_ack(put, call.user_ptr, call.requested,
                                   whole_result(length, call.remote_offset))) {
      report_apart(call, reports_send);
    }
  }
  poller.end_delivery_to_self();
  return delivered;
}

int put_to_self(NetworkInterface& interface, Peer& self, Request& request) noexcept {
  const MessageHeader& header = request.header;
  const bool delivered =
      deliver_to_self(interface, self,
                      {*request.put.descriptor, request.put_offset, header.length(),
                       header.requested_ack(), header.pt_index, header.match_bits,
                       header.remote_offset, request.user_ptr, header.hdr_data});
  return delivered ? PTL_OK : send_to_self(interface, self, request);
}

}  // namespace lintel

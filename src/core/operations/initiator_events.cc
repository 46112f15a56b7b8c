// Building and counting the initiator's events. Message path.
#include "core/operations/initiator_events.h"

namespace lintel {

namespace {

// A count to be made, recorded before an event is posted: a thread that sees the event may release
// the descriptor at once.
struct Count {
  CountingEvent* counter;
  bool bytes;

  Count(const MemoryDescriptor& descriptor, unsigned option, bool never_bytes) noexcept
      : counter((descriptor.options & option) != 0 ? descriptor.counter : nullptr),
        bytes((descriptor.options & PTL_MD_EVENT_CT_BYTES) != 0 && !never_bytes) {}

  // Success counts one, or the bytes manipulated; failure always counts one (spec 3.10.1).
  void apply(ptl_ni_fail_t fail, uint64_t mlength) const noexcept {
    if (counter == nullptr) return;
    if (fail != PTL_NI_OK) {
      counter->add_failure(1);
    } else {
      counter->add_success(bytes ? mlength : 1);
    }
  }
};

InitiatorEvent event_of(ptl_event_kind_t type, const Request& request,
                        const AnswerResult& result) noexcept {
  return {type, request.user_ptr, result.mlength, result.remote_offset, result.list, result.fail};
}

}  // namespace

void report_send(MemoryDescriptor& descriptor, const Request& request,
                 ptl_ni_fail_t fail) noexcept {
  const Count count(descriptor, PTL_MD_EVENT_CT_SEND, false);
  const uint64_t length = request.header.length();
  if (!send_event_wanted(descriptor, fail)) {
    count.apply(fail, length);
    return;
  }
  const CountAnnouncement announcement(count.counter);
  descriptor.event_queue->queue.post({PTL_EVENT_SEND, request.user_ptr,
                                      fail == PTL_NI_OK ? length : 0, request.header.remote_offset,
                                      PTL_PRIORITY_LIST, fail});
  count.apply(fail, length);
}

void report_unsent_put(MemoryDescriptor& descriptor, const Request& request,
                       ptl_ni_fail_t fail) noexcept {
  const MessageHeader& header = request.header;
  const bool asks_for_ack = header.asks_for_ack();
  const bool send_told = send_event_wanted(descriptor, fail);
  const bool ack_told = asks_for_ack && !send_told && descriptor.event_queue != nullptr;
  const Count send(descriptor, PTL_MD_EVENT_CT_SEND, true);
  const Count ack(descriptor, PTL_MD_EVENT_CT_ACK, true);
  const bool counts_ack = asks_for_ack && (ack_told || send.counter == nullptr);
  const CountAnnouncement announcement(descriptor.counter);
  // The descriptor is not read after this.
  if (send_told || ack_told)
    descriptor.event_queue->queue.post({send_told ? PTL_EVENT_SEND : PTL_EVENT_ACK,
                                        request.user_ptr, 0, header.remote_offset,
                                        PTL_PRIORITY_LIST, fail});
  send.apply(fail, 0);
  if (counts_ack) ack.apply(fail, 0);
}

void report_ack(MemoryDescriptor& descriptor, const Request& request,
                const AnswerResult& result) noexcept {
  // PTL_OC_ACK_REQ says nothing about the bytes (spec 3.15.1).
  const auto requested = request.header.requested_ack();
  const Count count(descriptor, PTL_MD_EVENT_CT_ACK, requested == PTL_OC_ACK_REQ);
  if (ack_event_wanted(descriptor, requested, result.fail)) {
    descriptor.event_queue->queue.post(event_of(PTL_EVENT_ACK, request, result));
  }
  count.apply(result.fail, result.mlength);
}

void report_reply(MemoryDescriptor& descriptor, const Request& request,
                  const AnswerResult& result) noexcept {
  const Count count(descriptor, PTL_MD_EVENT_CT_REPLY, false);
  if (!event_wanted(descriptor, result.fail)) {
    count.apply(result.fail, result.mlength);
    return;
  }
  const CountAnnouncement announcement(count.counter);
  descriptor.event_queue->queue.post(event_of(PTL_EVENT_REPLY, request, result));
  count.apply(result.fail, result.mlength);
}

}  // namespace lintel

// Building and counting the initiator's events. Message path.
#include "core/operations/initiator_events.h"

namespace lintel {

namespace {

void post_and_count(MemoryDescriptor& descriptor, bool posts, const InitiatorEvent& event,
                    const Count& count) noexcept {
  const CountAnnouncement announcement(posts ? count.counter : nullptr);
  if (posts) descriptor.event_queue->queue.post(event);
  count.apply(event.fail);
}

}  // namespace

void report_send(MemoryDescriptor& descriptor, void* user_ptr, AnswerResult whole,
                 ptl_ni_fail_t fail) noexcept {
  const Count count = count_of(descriptor, PTL_MD_EVENT_CT_SEND, PTL_NO_ACK_REQ, whole.mlength);
  whole.fail = fail;
  if (fail != PTL_NI_OK) whole.mlength = 0;
  post_and_count(descriptor, send_event_wanted(descriptor, fail),
                 event_of(PTL_EVENT_SEND, user_ptr, whole), count);
}

void report_unsent_put(MemoryDescriptor& descriptor, const Request& request,
                       ptl_ni_fail_t fail) noexcept {
  const MessageHeader& header = request.header;
  const bool asks_for_ack = header.asks_for_ack();
  const bool send_told = send_event_wanted(descriptor, fail);
  const bool ack_told = asks_for_ack && !send_told && descriptor.event_queue != nullptr;
  const Count send = count_of(descriptor, PTL_MD_EVENT_CT_SEND, header.requested_ack(), 0);
  const Count ack = count_of(descriptor, PTL_MD_EVENT_CT_ACK, header.requested_ack(), 0);
  const bool counts_ack = asks_for_ack && (ack_told || send.counter == nullptr);
  const CountAnnouncement announcement(descriptor.counter);
  // The descriptor is not read after this.
  if (send_told || ack_told)
    descriptor.event_queue->queue.post(
        event_of(send_told ? PTL_EVENT_SEND : PTL_EVENT_ACK, request.user_ptr,
                 {0, header.remote_offset, PTL_PRIORITY_LIST, fail}));
  send.apply(fail);
  if (counts_ack) ack.apply(fail);
}

void report_reply(MemoryDescriptor& descriptor, const Request& request,
                  const AnswerResult& result) noexcept {
  post_and_count(descriptor, event_wanted(descriptor, result.fail),
                 event_of(PTL_EVENT_REPLY, request.user_ptr, result),
                 count_of(descriptor, PTL_MD_EVENT_CT_REPLY, PTL_NO_ACK_REQ, result.mlength));
}

}  // namespace lintel

// Events and counts at the initiator (spec 3.10.1, 3.13, 3.14). Message path.
#pragma once

#include <cstdint>

#include "core/events/event_queue.h"
#include "core/objects/memory_descriptor.h"
#include "core/request.h"
#include "portals4.h"

namespace lintel {

// Whether success counts the bytes manipulated, not one (spec 3.10.1). `option`:
// PTL_MD_EVENT_CT_SEND, _ACK or _REPLY. PTL_OC_ACK_REQ says nothing about the bytes (spec 3.15.1).
[[nodiscard]] inline bool counts_bytes(const MemoryDescriptor& descriptor, unsigned option,
                                       ptl_ack_req_t requested) noexcept {
  return (descriptor.options & PTL_MD_EVENT_CT_BYTES) != 0 &&
         (option != PTL_MD_EVENT_CT_ACK || requested != PTL_OC_ACK_REQ);
}

// A change of a counter. Taken down before an event is posted: a thread that sees that may release
// the descriptor at once.
struct Count {
  CountingEvent* counter;  // nullptr: nothing
  uint64_t amount;         // of a success; a failure always counts one
  void apply(ptl_ni_fail_t fail = PTL_NI_OK) const noexcept {
    if (counter == nullptr) return;
    if (fail != PTL_NI_OK) [[unlikely]]
      counter->add_failure(1);
    else
      counter->add_success(amount);
  }
};
// `mlength`: bytes manipulated.
[[nodiscard]] inline Count count_of(const MemoryDescriptor& descriptor, unsigned option,
                                    ptl_ack_req_t requested, uint64_t mlength) noexcept {
  if (descriptor.counter == nullptr || (descriptor.options & option) == 0) return {};
  return {descriptor.counter, counts_bytes(descriptor, option, requested) ? mlength : 1};
}

// Reports a put or an atomic that ends without having been sent. PTL_EVENT_SEND reports that. No
// acknowledgement reports it again (spec 3.13.3), unless the descriptor reports acknowledgements
// only.
void report_unsent_put(MemoryDescriptor& descriptor, const Request& request,
                       ptl_ni_fail_t fail) noexcept;

struct AnswerResult {
  uint64_t mlength;        // bytes manipulated at the target
  uint64_t remote_offset;  // bytes, as used by the target
  ptl_list_t list;
  ptl_ni_fail_t fail;
};
// Returns the result of an operation that did to all its bytes what was asked for.
[[nodiscard]] constexpr AnswerResult whole_result(uint64_t length,
                                                  uint64_t remote_offset) noexcept {
  return {length, remote_offset, PTL_PRIORITY_LIST, PTL_NI_OK};
}
[[nodiscard]] inline AnswerResult whole_result(const Request& request) noexcept {
  return whole_result(request.header.length(), request.header.remote_offset);
}
// `whole`: the result if the message was sent.
void report_send(MemoryDescriptor& descriptor, void* user_ptr, AnswerResult whole,
                 ptl_ni_fail_t fail = PTL_NI_OK) noexcept;
void report_reply(MemoryDescriptor& descriptor, const Request& request,
                  const AnswerResult& result) noexcept;

// Whether an acknowledgement would be reported (spec 3.15.2: it is only sent then).
[[nodiscard]] inline bool descriptor_listens(const MemoryDescriptor& descriptor) noexcept {
  return descriptor.event_queue != nullptr || descriptor.counter != nullptr;
}

[[nodiscard]] inline bool event_wanted(const MemoryDescriptor& descriptor,
                                       ptl_ni_fail_t fail) noexcept {
  return descriptor.event_queue != nullptr &&
         (fail != PTL_NI_OK || (descriptor.options & PTL_MD_EVENT_SUCCESS_DISABLE) == 0);
}

[[nodiscard]] inline bool send_event_wanted(const MemoryDescriptor& descriptor,
                                            ptl_ni_fail_t fail) noexcept {
  return event_wanted(descriptor, fail) && (descriptor.options & PTL_MD_EVENT_SEND_DISABLE) == 0;
}

// A failure posts a full event, whatever was requested (spec 3.13.3). A success posts one only if a
// full event was requested: with PTL_CT_ACK_REQ and PTL_OC_ACK_REQ the application only counts, and
// has reserved no slot of its queue (spec 3.15.1).
[[nodiscard]] inline bool ack_event_wanted(const MemoryDescriptor& descriptor,
                                           ptl_ack_req_t requested, ptl_ni_fail_t fail) noexcept {
  return event_wanted(descriptor, fail) && (fail != PTL_NI_OK || requested == PTL_ACK_REQ);
}

[[nodiscard, gnu::always_inline]] inline InitiatorEvent event_of(
    ptl_event_kind_t type, void* user_ptr, const AnswerResult& result) noexcept {
  return {type, user_ptr, result.mlength, result.remote_offset, result.list, result.fail};
}

// Reports that a put was sent. Straight code for most puts: full events only.
[[gnu::always_inline]] inline void report_sent_put(MemoryDescriptor& descriptor, void* user_ptr,
                                                   const AnswerResult& whole) noexcept {
  if ((descriptor.options & PTL_MD_EVENT_CT_SEND) != 0 || !send_event_wanted(descriptor, PTL_NI_OK))
      [[unlikely]]
    return report_send(descriptor, user_ptr, whole);
  descriptor.event_queue->queue.post(event_of(PTL_EVENT_SEND, user_ptr, whole));
}
// Posts the event of the acknowledgement of a put or an atomic; returns what is to be counted then.
[[nodiscard, gnu::always_inline]] inline Count post_ack(MemoryDescriptor& descriptor,
                                                        void* user_ptr, ptl_ack_req_t requested,
                                                        const AnswerResult& result) noexcept
    LINTEL_REQUIRES(polling) {
  const Count count = count_of(descriptor, PTL_MD_EVENT_CT_ACK, requested, result.mlength);
  if (ack_event_wanted(descriptor, requested, result.fail))
    descriptor.event_queue->queue.post_in_round(
        [&] { return event_of(PTL_EVENT_ACK, user_ptr, result); });
  return count;
}
inline void report_ack(MemoryDescriptor& descriptor, const Request& request,
                       const AnswerResult& result) noexcept LINTEL_REQUIRES(polling) {
  post_ack(descriptor, request.user_ptr, request.header.requested_ack(), result).apply(result.fail);
}

// Posts both full events of a put that was delivered in whole before it was reported as sent.
// False, and nothing was done: the descriptor reports otherwise.
[[nodiscard, gnu::always_inline]] inline bool report_put_and_ack(
    MemoryDescriptor& descriptor, void* user_ptr, ptl_ack_req_t requested,
    const AnswerResult& whole) noexcept {
  if ((descriptor.options & (PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK)) != 0 ||
      !send_event_wanted(descriptor, PTL_NI_OK) ||
      !ack_event_wanted(descriptor, requested, PTL_NI_OK))
    return false;
  descriptor.event_queue->queue.post(event_of(PTL_EVENT_SEND, user_ptr, whole),
                                     event_of(PTL_EVENT_ACK, user_ptr, whole));
  return true;
}

}  // namespace lintel

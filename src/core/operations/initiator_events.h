// Events and counts at the initiator (spec 3.10.1, 3.13, 3.14). Message path.
#pragma once

#include <cstdint>

#include "core/objects/memory_descriptor.h"
#include "portals4.h"
#include "transport/message.h"

namespace lintel {

class NetworkInterface;

// What the initiator knows of its operation when it reports on it.
struct OperationView {
  const MessageHeader& header;  // of the request
  uint64_t offset;              // into the descriptor
  void* user_ptr;
};

void report_send(NetworkInterface& interface, MemoryDescriptor& descriptor,
                 const OperationView& view, ptl_ni_fail_t fail) noexcept;

// Of a put or an atomic that ends here without having been sent. PTL_EVENT_SEND reports that. No
// acknowledgement reports it again (spec 3.13.3), unless the descriptor reports acknowledgements
// only.
void report_unsent_put(NetworkInterface& interface, MemoryDescriptor& descriptor,
                       const OperationView& view, ptl_ni_fail_t fail) noexcept;

// Both full events of a put that was delivered in whole before it was reported as sent. False, and
// nothing was done: the descriptor reports otherwise.
[[nodiscard]] bool report_put_and_ack(NetworkInterface& interface, MemoryDescriptor& descriptor,
                                      const OperationView& view) noexcept;

struct AnswerResult {
  uint64_t mlength;        // bytes manipulated at the target
  uint64_t remote_offset;  // bytes, as used by the target
  ptl_list_t list;
  ptl_ni_fail_t fail;
};
// Only in a round of polling.
void report_ack(NetworkInterface& interface, MemoryDescriptor& descriptor,
                const OperationView& view, const AnswerResult& result) noexcept;
void report_reply(NetworkInterface& interface, MemoryDescriptor& descriptor,
                  const OperationView& view, const AnswerResult& result) noexcept;

// A failure posts a full event, whatever was requested (spec 3.13.3). A success posts one only if a
// full event was requested: with PTL_CT_ACK_REQ and PTL_OC_ACK_REQ the application only counts, and
// has reserved no slot of its queue (spec 3.15.1).
[[nodiscard]] inline bool ack_event_wanted(const MemoryDescriptor& descriptor,
                                           ptl_ack_req_t requested, ptl_ni_fail_t fail) noexcept {
  return descriptor.event_queue != nullptr &&
         (fail != PTL_NI_OK ||
          (requested == PTL_ACK_REQ && (descriptor.options & PTL_MD_EVENT_SUCCESS_DISABLE) == 0));
}

// Whether an acknowledgement would be reported (spec 3.15.2: it is only sent then).
[[nodiscard]] inline bool descriptor_listens(const MemoryDescriptor& descriptor) noexcept {
  return descriptor.event_queue != nullptr || descriptor.counter != nullptr;
}

}  // namespace lintel

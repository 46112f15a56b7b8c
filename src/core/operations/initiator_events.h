// Events and counts at the initiator (spec 3.10.1, 3.13, 3.14). Message path.
#pragma once

#include <cstdint>

#include "core/objects/memory_descriptor.h"
#include "core/objects/network_interface.h"
#include "core/operations/physical_interface.h"
#include "portals4.h"
#include "transport/message.h"

namespace lintel {

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

[[nodiscard]] inline bool event_wanted(const MemoryDescriptor& descriptor,
                                       ptl_ni_fail_t fail) noexcept {
  return descriptor.event_queue != nullptr &&
         (fail != PTL_NI_OK || (descriptor.options & PTL_MD_EVENT_SUCCESS_DISABLE) == 0);
}

[[nodiscard]] inline bool send_event_wanted(const MemoryDescriptor& descriptor,
                                            ptl_ni_fail_t fail) noexcept {
  return event_wanted(descriptor, fail) && (descriptor.options & PTL_MD_EVENT_SEND_DISABLE) == 0;
}

// Every field whose value is known (table 3-3 demands fewer).
[[nodiscard, gnu::always_inline]] inline ptl_event_t describe_operation(
    NetworkInterface& interface, const MemoryDescriptor& descriptor, const OperationView& view,
    MessageKind kind, ptl_event_kind_t type, ptl_ni_fail_t fail, uint64_t mlength,
    uint64_t remote_offset, ptl_list_t list) noexcept {
  const MessageHeader& header = view.header;
  const bool atomic = kind != MessageKind::put && kind != MessageKind::get;
  // Every field by name: zeroing the whole first would cost more than filling it.
  return {.start = descriptor.region.address(view.offset),
          .user_ptr = view.user_ptr,
          .hdr_data = header.hdr_data,
          .match_bits = interface.matching() ? header.match_bits : 0,
          .rlength = header.length(),
          .mlength = mlength,
          .remote_offset = remote_offset,
          .initiator = interface.own_id(),
          .uid = interface.physical().uid(),
          .pt_index = header.pt_index,
          .type = type,
          .ptl_list = list,
          .ni_fail_type = fail,
          .atomic_operation = atomic ? static_cast<ptl_op_t>(header.operation) : PTL_MIN,
          .atomic_type = atomic ? header.datatype() : PTL_INT8_T};
}

// The events of most puts: full events only, success. Straight code at the calls.
[[gnu::always_inline]] inline void report_sent_put(NetworkInterface& interface,
                                                   MemoryDescriptor& descriptor,
                                                   const OperationView& view) noexcept {
  if ((descriptor.options & PTL_MD_EVENT_CT_SEND) != 0 || !send_event_wanted(descriptor, PTL_NI_OK))
      [[unlikely]]
    return report_send(interface, descriptor, view, PTL_NI_OK);
  descriptor.event_queue->queue.post(
      describe_operation(interface, descriptor, view, MessageKind::put, PTL_EVENT_SEND, PTL_NI_OK,
                         view.header.length(), view.header.remote_offset, PTL_PRIORITY_LIST));
}
// Of a put or an atomic of which nothing was truncated. ack_event_wanted() for success.
[[gnu::always_inline]] inline void report_whole_ack(NetworkInterface& interface,
                                                    MemoryDescriptor& descriptor,
                                                    const OperationView& view) noexcept {
  const MessageHeader& header = view.header;
  if ((descriptor.options & PTL_MD_EVENT_CT_ACK) != 0) [[unlikely]]
    return report_ack(interface, descriptor, view,
                      {header.length(), header.remote_offset, PTL_PRIORITY_LIST, PTL_NI_OK});
  descriptor.event_queue->queue.post(describe_operation(interface, descriptor, view, header.kind,
                                                        PTL_EVENT_ACK, PTL_NI_OK, header.length(),
                                                        header.remote_offset, PTL_PRIORITY_LIST));
}

// Both full events of a put that was delivered in whole before it was reported as sent. False, and
// nothing was done: the descriptor reports otherwise.
[[nodiscard, gnu::always_inline]] inline bool report_put_and_ack(
    NetworkInterface& interface, MemoryDescriptor& descriptor, const OperationView& view) noexcept {
  if ((descriptor.options & (PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK)) != 0 ||
      !send_event_wanted(descriptor, PTL_NI_OK) ||
      !ack_event_wanted(descriptor, view.header.requested_ack(), PTL_NI_OK))
    return false;
  descriptor.event_queue->queue.post(
      describe_operation(interface, descriptor, view, MessageKind::put, PTL_EVENT_SEND, PTL_NI_OK,
                         view.header.length(), view.header.remote_offset, PTL_PRIORITY_LIST),
      PTL_EVENT_ACK);
  return true;
}

}  // namespace lintel

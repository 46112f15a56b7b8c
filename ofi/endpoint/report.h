// Reports the end of an operation: to the counter, and to the completion queue if the program wants
// that. Frees the operation. Message path; all need the lock of the domain.
#pragma once

#include <portals4.h>

#include "endpoint/arrival.h"
#include "endpoint/endpoint.h"
#include "endpoint/operation.h"
#include "wire/message_header.h"

namespace lintel::ofi {

[[nodiscard]] inline uint64_t message_flag(const Operation& operation) noexcept {
  return operation.has(is_message) ? FI_MSG : FI_TAGGED;
}
[[nodiscard]] inline uint64_t receive_flags(const Operation& operation,
                                            MessageHeader header) noexcept {
  return FI_RECV | message_flag(operation) | (header.has_data() ? FI_REMOTE_CQ_DATA : 0);
}
[[nodiscard]] inline uint64_t reported_tag(const Operation& operation,
                                           ptl_match_bits_t bits) noexcept {
  return operation.has(is_message) ? 0 : bits & ~long_bit;
}

// A report at a shared receive context goes to one of the endpoints that share it.

// A receive that ends without a message. `extra_flags` are added to those of the entry.
void fail_receive(Operation& operation, int error, int provider_error, uint64_t extra_flags = 0);
// A read-only look at a message.
void report_peek(Operation& operation, const Arrival& arrival);

// Adds an entry to the queue; an error entry if the message was cut or its sender is not in the
// address vector. Frees nothing.
void report_arrival(Endpoint& endpoint, const Operation& operation, const Arrival& arrival,
                    void* context, void* buffer, size_t kept);
// A receive whose data is in place: `kept` bytes of it.
void complete_receive(Operation& operation, const Arrival& arrival, size_t kept);

void complete_send(Operation& operation);
void fail_send(Operation& operation, ptl_ni_fail_t failure);
// A send that is complete when its call returns.
inline void report_sent(Endpoint& endpoint, bool reports, void* context, uint64_t flags) {
  if (Counter* const counter = endpoint.counters().send; counter != nullptr) counter->add(1);
  if (reports) endpoint.transmit().queue->push_to_ring({context, flags, 0, nullptr, 0, 0});
}

}  // namespace lintel::ofi

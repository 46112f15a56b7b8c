#include "endpoint/report.h"

#include "base/provider.h"
#include "wire/address.h"

namespace lintel::ofi {
namespace {

fi_cq_err_entry error_entry(const fi_cq_tagged_entry& entry, int code) {
  fi_cq_err_entry error{};
  error.op_context = entry.op_context;
  error.flags = entry.flags;
  error.len = entry.len;
  error.buf = entry.buf;
  error.data = entry.data;
  error.tag = entry.tag;
  error.err = code;
  return error;
}

void report_unknown_sender(CompletionQueue& queue, const fi_cq_tagged_entry& entry,
                           fi_addr_t sender) {
  const Address name = decode(sender);
  queue.push_error(error_entry(entry, FI_EADDRNOTAVAIL), &name, sizeof name);
}

void report_cut(CompletionQueue& queue, const fi_cq_tagged_entry& entry, size_t length) {
  fi_cq_err_entry error = error_entry(entry, FI_ETRUNC);
  error.olen = length - entry.len;
  queue.push_error(error);
}

}  // namespace

void report_arrival(Endpoint& endpoint, const Operation& operation, const Arrival& arrival,
                    void* context, void* buffer, size_t kept) {
  Endpoint& recipient = endpoint.recipient(arrival.recipient);
  const bool is_cut = kept < arrival.length;
  if (Counter* const counter = counter_of(operation, recipient.counters().receive);
      counter != nullptr) {
    if (is_cut) {
      counter->add_errors(1);
    } else {
      counter->add(1);
    }
  }
  CompletionQueue* const queue = recipient.receive().queue;
  if (queue == nullptr) return;
  const fi_cq_tagged_entry entry = {context,
                                    receive_flags(operation, arrival.header),
                                    kept,
                                    buffer,
                                    arrival.header.data(),
                                    reported_tag(operation, arrival.bits)};
  if (is_cut) return report_cut(*queue, entry, arrival.length);
  const bool is_shared = &recipient != &endpoint;
  if (!operation.has(reports_completion) && !(is_shared && !recipient.receive().is_selective))
    return;
  const fi_addr_t source = recipient.source(arrival.sender);
  if (source == FI_ADDR_NOTAVAIL && (recipient.caps() & FI_SOURCE_ERR) != 0 &&
      (recipient.caps() & FI_SOURCE) != 0)
    return report_unknown_sender(*queue, entry, arrival.sender);
  queue->push(entry, source);
}

void complete_receive(Operation& operation, const Arrival& arrival, size_t kept) {
  Endpoint& endpoint = *operation.endpoint;
  report_arrival(endpoint, operation, arrival, context_of(operation),
                 operation.has(has_segments) ? nullptr : operation.buffer, kept);
  endpoint.end_operation(operation);
}

void fail_receive(Operation& operation, int error, int provider_error, uint64_t extra_flags) {
  Endpoint& endpoint = *operation.endpoint;
  Endpoint& recipient = endpoint.first_recipient();
  if (Counter* const counter = counter_of(operation, recipient.counters().receive);
      counter != nullptr)
    counter->add_errors(1);
  if (CompletionQueue* const queue = recipient.receive().queue; queue != nullptr) {
    fi_cq_err_entry entry{};
    entry.op_context = context_of(operation);
    entry.flags = FI_RECV | message_flag(operation) | extra_flags;
    entry.tag = operation.has(is_message) ? 0 : operation.tag & ~long_bit;
    entry.err = error;
    entry.prov_errno = provider_error;
    queue->push_error(entry);
  }
  endpoint.end_operation(operation);
}

void report_peek(Operation& operation, const Arrival& arrival) {
  Endpoint& endpoint = *operation.endpoint;
  const Endpoint& recipient = endpoint.recipient(arrival.recipient);
  CompletionQueue* const queue = recipient.receive().queue;
  if (operation.has(reports_completion) && queue != nullptr)
    queue->push({operation.context, receive_flags(operation, arrival.header), arrival.length,
                 nullptr, arrival.header.data(), reported_tag(operation, arrival.bits)},
                recipient.source(arrival.sender));
  endpoint.end_operation(operation);
}

void complete_send(Operation& operation) {
  Endpoint& endpoint = *operation.endpoint;
  if (Counter* const counter = counter_of(operation, endpoint.counters().send); counter != nullptr)
    counter->add(1);
  if (operation.has(reports_completion))
    endpoint.transmit().queue->push(
        {context_of(operation), FI_SEND | message_flag(operation), 0, nullptr, 0, 0});
  endpoint.end_operation(operation);
}

void fail_send(Operation& operation, ptl_ni_fail_t failure) {
  Endpoint& endpoint = *operation.endpoint;
  if (Counter* const counter = counter_of(operation, endpoint.counters().send); counter != nullptr)
    counter->add_errors(1);
  if (CompletionQueue* const queue = endpoint.transmit().queue; queue != nullptr) {
    fi_cq_err_entry entry{};
    entry.op_context = context_of(operation);
    entry.flags = FI_SEND | message_flag(operation);
    entry.err = error_of_failure(failure);
    entry.prov_errno = static_cast<int>(failure);
    queue->push_error(entry);
  }
  endpoint.end_operation(operation);
}

}  // namespace lintel::ofi

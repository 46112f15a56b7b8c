#include "transfer/multi_receive.h"

#include <algorithm>

#include "base/provider.h"
#include "endpoint/report.h"
#include "endpoint/segments.h"

namespace lintel::ofi {
namespace {

// The offset of unexpected messages, as PTL_ME_LOCAL_INC_UH_RLENGTH moves it.
uint64_t& offset_of(Operation& operation) noexcept { return operation.tag; }
uint64_t& fetches_of(Operation& operation) noexcept { return operation.extra; }

void finish_if_done(Operation& operation) {
  if (!operation.has(is_unlinked) || fetches_of(operation) != 0) return;
  Endpoint& endpoint = *operation.endpoint;
  if (CompletionQueue* const queue = endpoint.first_recipient().receive().queue; queue != nullptr)
    queue->push({operation.context, FI_MULTI_RECV, 0, nullptr, 0, 0});
  endpoint.end_operation(operation);
}

void fetch_part(Operation& operation, const Arrival& arrival, char* place, size_t room) {
  Endpoint& endpoint = *operation.endpoint;
  Operation& part = endpoint.begin_operation(OwnerKind::multi_fetch, &operation, true);
  part.state |= operation.state & (reports_completion | is_message);
  part.buffer = place;
  part.length = room;
  ++fetches_of(operation);
  fetch(part, arrival, OwnerKind::multi_fetch);
}

}  // namespace

ssize_t post_multi_receive(Endpoint& endpoint, const ReceiveRequest& request) {
  if (request.count != 1 || !request.is_message) return -FI_EINVAL;
  const Guard guard(endpoint.domain().lock());
  ptl_me_t entry;
  if (const ssize_t code = make_criteria(endpoint, request, entry); code != 0) return code;
  entry.options =
      PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH | PTL_ME_EVENT_LINK_DISABLE;
  entry.start = request.pieces->iov_base;
  entry.length = request.pieces->iov_len;
  entry.min_free = std::clamp<size_t>(endpoint.least_free(), 1, std::max<size_t>(entry.length, 1));
  Operation& operation = endpoint.begin_operation(OwnerKind::multi_receive, request.context);
  if (endpoint.receive().reports(request.flags)) operation.state |= reports_completion;
  operation.state |= is_message;
  operation.buffer = entry.start;
  operation.length = entry.length;
  offset_of(operation) = 0;
  fetches_of(operation) = 0;
  operation.header = only_sender(endpoint, request, entry);
  const ssize_t code = endpoint.channel(true).post(entry, operation);
  if (code != 0) endpoint.end_operation(operation);
  return code;
}

void end_multi_receive(Operation& operation, int error) {
  Endpoint& endpoint = *operation.endpoint;
  if (PtlMEUnlink(endpoint.posted().entry(operation)) != PTL_OK) return;  // it is used up
  // Messages whose events are still in the queue are in the buffer.
  endpoint.domain().pump().drain();
  endpoint.posted().remove(operation);
  operation.state |= is_unlinked;
  if (fetches_of(operation) != 0) return;  // the last of them ends the buffer
  fail_receive(operation, error, 0, FI_MULTI_RECV);
}

void part_arrived(Operation& operation, const ptl_event_t& event) {
  report_arrival(*operation.endpoint, operation, arrival_of(event), operation.context, event.start,
                 event.mlength);
}

void part_found_header(Operation& operation, const ptl_event_t& event) {
  const Arrival arrival = arrival_of(event);
  char* const place = static_cast<char*>(operation.buffer) + offset_of(operation);
  const size_t room = operation.length - offset_of(operation);
  offset_of(operation) += std::min(arrival.length, room);
  if ((arrival.bits & long_bit) != 0) return fetch_part(operation, arrival, place, room);
  size_t kept = std::min<size_t>(event.mlength, room);
  if (!copy_payload(place, event.start, kept)) kept = 0;
  report_arrival(*operation.endpoint, operation, arrival, operation.context, place, kept);
}

void buffer_used_up(Operation& operation) {
  operation.endpoint->posted().remove(operation);
  operation.state |= is_unlinked;
  finish_if_done(operation);
}

void part_fetched(Operation& part, const ptl_event_t& event) {
  Endpoint& endpoint = *part.endpoint;
  Operation& operation = *static_cast<Operation*>(part.context);
  endpoint.remove_transmit(part);
  const MessageHeader header{part.header};
  const Arrival arrival = {header, part.tag, part.extra, encode(part.sender(), header.index()),
                           header.key()};
  const size_t kept = event.ni_fail_type == PTL_NI_OK ? event.mlength : 0;
  report_arrival(endpoint, operation, arrival, operation.context, part.buffer, kept);
  endpoint.end_operation(part);
  --fetches_of(operation);
  finish_if_done(operation);
}

}  // namespace lintel::ofi

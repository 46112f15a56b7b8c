#include "transfer/peek.h"

#include <algorithm>

#include "base/provider.h"
#include "endpoint/report.h"
#include "endpoint/segments.h"

namespace lintel::ofi {
namespace {

// Operation::small of a search.
constexpr uint16_t claims = 1;
constexpr uint16_t discards = 2;

// Tells the sender of a long message that nobody will get it.
void release_sender(Endpoint& endpoint, const Arrival& arrival) {
  Operation& operation = endpoint.begin_operation(OwnerKind::peek, nullptr);
  operation.small = 0;
  const Peer sender(arrival.sender);
  endpoint.add_transmits(operation);
  const int code = PtlGet(endpoint.domain().network().replies(), 0, 0, sender.process,
                          sender.portal(Portal::rendezvous), arrival.header.key(), 0, &operation);
  if (code == PTL_OK) return;
  (void)failed(FI_LOG_EP_DATA, "PtlGet", code);
  endpoint.remove_transmit(operation);
  endpoint.end_operation(operation);
}

void keep(Operation& operation, const Arrival& arrival, const ptl_event_t& event) {
  const auto* const data = static_cast<const std::byte*>(event.start);
  const bool is_long = (arrival.bits & long_bit) != 0;
  operation.endpoint->claimed().add(
      {operation.context, arrival,
       is_long ? std::vector<std::byte>() : std::vector<std::byte>(data, data + event.mlength)});
}

}  // namespace

ssize_t peek(Endpoint& endpoint, const ReceiveRequest& request) {
  if (request.is_message) return -FI_ENOSYS;
  const Guard guard(endpoint.domain().lock());
  ptl_me_t entry{};
  if (const ssize_t code = make_criteria(endpoint, request, entry); code != 0) return code;
  Channel& channel = endpoint.channel(false);
  Operation& operation = endpoint.begin_operation(OwnerKind::peek, request.context);
  operation.tag = request.tag;
  if (endpoint.receive().reports(request.flags)) operation.state |= reports_completion;
  operation.small = static_cast<uint16_t>(((request.flags & FI_CLAIM) != 0 ? claims : 0) |
                                          ((request.flags & FI_DISCARD) != 0 ? discards : 0));
  // Receives that are held back come before this search.
  if (channel.has_delayed()) endpoint.domain().progress();
  if (channel.has_delayed()) {
    fail_receive(operation, FI_ENOMSG, PTL_NI_NO_MATCH);
    return 0;
  }
  entry.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE;
  const bool removes = operation.small != 0;
  const int code = PtlMESearch(endpoint.domain().network().interface(), channel.portal(), &entry,
                               removes ? PTL_SEARCH_DELETE : PTL_SEARCH_ONLY, &operation);
  if (code == PTL_OK) return 0;
  endpoint.end_operation(operation);
  return failed(FI_LOG_EP_DATA, "PtlMESearch", code);
}

void search_ended(Operation& operation, const ptl_event_t& event) {
  Endpoint& endpoint = *operation.endpoint;
  if (event.type == PTL_EVENT_REPLY) {  // of release_sender()
    endpoint.remove_transmit(operation);
    endpoint.end_operation(operation);
    return;
  }
  if (event.ni_fail_type != PTL_NI_OK) {
    fail_receive(operation, FI_ENOMSG, static_cast<int>(event.ni_fail_type));
    return;
  }
  const Arrival arrival = arrival_of(event);
  if ((operation.small & discards) != 0) {
    if ((arrival.bits & long_bit) != 0) release_sender(endpoint, arrival);
  } else if ((operation.small & claims) != 0) {
    keep(operation, arrival, event);
  }
  report_peek(operation, arrival);
}

ssize_t receive_claimed(Endpoint& endpoint, const ReceiveRequest& request) {
  const Guard guard(endpoint.domain().lock());
  const std::optional<ClaimedMessage> message = endpoint.claimed().take(request.context);
  if (!message.has_value()) {
    FI_WARN(provider(), FI_LOG_EP_DATA, "No message was claimed with the context %p.\n",
            request.context);
    return -FI_EINVAL;
  }
  const Arrival& arrival = message->arrival;
  const bool is_long = (arrival.bits & long_bit) != 0;
  Operation& operation = endpoint.begin_operation(OwnerKind::receive, request.context);
  if (endpoint.receive().reports(request.flags)) operation.state |= reports_completion;
  if ((request.flags & FI_DISCARD) != 0) {
    if (is_long) release_sender(endpoint, arrival);
    report_peek(operation, arrival);
    return 0;
  }
  if (is_long) {
    take_memory(operation, request);
    fetch(operation, arrival);
    return 0;
  }
  operation.buffer = request.count == 1 ? request.pieces->iov_base : nullptr;
  const size_t kept = std::min(message->data.size(), total_bytes(request.pieces, request.count));
  if (scatter(request.pieces, request.count, message->data.data(), kept)) {
    complete_receive(operation, arrival, kept);
  } else {
    fail_receive(operation, FI_EFAULT, PTL_NI_SEGV);
  }
  return 0;
}

}  // namespace lintel::ofi

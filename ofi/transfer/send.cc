#include "transfer/send.h"

#include <algorithm>

#include "base/limits.h"
#include "base/provider.h"
#include "base/settings.h"
#include "endpoint/report.h"
#include "endpoint/segments.h"
#include "transfer/calls.h"
#include "transfer/short_send.h"

namespace lintel::ofi {
namespace {

constexpr uint64_t needs_acknowledgment = FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;

// Memory to send: a descriptor and an offset in it.
struct Source {
  ptl_handle_md_t descriptor;
  ptl_size_t offset;
};

[[gnu::noinline]] ssize_t put_gathered(Endpoint& endpoint, const SendRequest& request,
                                       size_t length, const Envelope& envelope) {
  char gathered[inject_bytes];
  if (!gather(gathered, sizeof gathered, request.pieces, request.count)) return -FI_EFAULT;
  return put_copy(endpoint, gathered, length, envelope);
}

// With pieces: makes a descriptor that lasts as long as the operation.
int find_source(Operation& operation, const SendRequest& request, ptl_handle_md_t whole_memory,
                unsigned options, Source& source) {
  if (request.count <= 1) {
    const void* const start = request.count == 1 ? request.pieces->iov_base : nullptr;
    source = {whole_memory, reinterpret_cast<ptl_size_t>(start)};
    return PTL_OK;
  }
  auto* const segments = new Segments;
  std::copy_n(request.pieces, request.count, segments->pieces.begin());
  segments->count = request.count;
  operation.buffer = segments;
  operation.state |= has_segments;
  Network& network = operation.endpoint->domain().network();
  const ptl_md_t description = {.start = segments->pieces.data(),
                                .length = segments->count,
                                .options = PTL_IOVEC | options,
                                .eq_handle = network.events(),
                                .ct_handle = PTL_CT_NONE};
  const int code = PtlMDBind(network.interface(), &description, &segments->descriptor);
  source = {segments->descriptor, 0};
  return code;
}

void release_source(Operation& operation) {
  if (!operation.has(has_segments)) return;
  delete static_cast<Segments*>(operation.buffer);
  operation.state &= static_cast<uint8_t>(~has_segments);
}

ssize_t give_up(Operation& operation, const char* call, int code) {
  release_source(operation);
  operation.endpoint->abandon(operation);
  return code == PTL_NO_SPACE ? -FI_EAGAIN : failed(FI_LOG_EP_DATA, call, code);
}

Operation& begin_send(Endpoint& endpoint, OwnerKind kind, const SendRequest& request,
                      size_t length) {
  Operation& operation = endpoint.begin_operation(kind, request.context, request.deferral);
  if (endpoint.transmit().reports(request.flags, request.deferral))
    operation.state |= reports_completion;
  if (request.is_message) operation.state |= is_message;
  operation.length = length;
  return operation;
}

void withdraw_send(Operation& operation) {
  Endpoint& endpoint = *operation.endpoint;
  if (operation.kind == OwnerKind::long_send) {
    PtlMEUnlink(endpoint.posted().entry(operation));
    endpoint.posted().remove(operation);
  }
  endpoint.remove_transmit(operation);
  release_source(operation);
  endpoint.abandon(operation);
}

// Counts the operation. One that is held back is handed to Portals.
ssize_t finish_start(Operation& operation) {
  operation.endpoint->add_transmits(operation);
  if (!operation.has(is_deferred)) [[likely]]
    return 0;
  const Trigger::Result result = deferral_of(operation).start(&operation, withdraw_send);
  if (result.calls != 0) return 0;
  withdraw_send(operation);
  return error_of_start(result.code);
}

// A message that is sent whole. Its event says that it was sent, or that it was acknowledged.
[[gnu::noinline]] ssize_t send_eager(Endpoint& endpoint, const SendRequest& request, size_t length,
                                     const Envelope& envelope) {
  const Network& network = endpoint.domain().network();
  const bool acknowledged = (request.flags & needs_acknowledgment) != 0;
  // FI_INJECT with an acknowledgment: the length was checked.
  const bool is_copied = (request.flags & FI_INJECT) != 0;
  Operation& operation = begin_send(endpoint, OwnerKind::send, request, length);
  Source source;
  const ptl_handle_md_t whole_memory = !acknowledged ? network.sending()
                                       : is_copied   ? network.copied()
                                                     : network.acknowledged();
  unsigned options = acknowledged ? PTL_MD_EVENT_SEND_DISABLE : 0;
  if (is_copied) options |= PTL_MD_VOLATILE;
  int code = find_source(operation, request, whole_memory, options, source);
  if (code != PTL_OK) return give_up(operation, "PtlMDBind", code);
  if (request.deferral != nullptr && !operation.has(has_segments))
    source.descriptor = request.deferral->descriptor(
        acknowledged ? Counter::Counted::answers : Counter::Counted::sends, source.descriptor);
  code = make(
      PutCall{source.descriptor, source.offset, length, acknowledged ? PTL_ACK_REQ : PTL_NO_ACK_REQ,
              envelope.peer.process, envelope.portal, envelope.bits, envelope.peer.recipient(),
              &operation, envelope.header},
      request.deferral);
  if (code != PTL_OK) return give_up(operation, "PtlPut", code);
  return finish_start(operation);
}

// The data can be got until the receiver has it.
int offer(Operation& operation, const SendRequest& request, const Envelope& envelope,
          uint32_t key) {
  ptl_me_t entry{};
  entry.ct_handle = PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.options =
      PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE;
  if (operation.has(has_segments)) {
    auto& segments = *static_cast<Segments*>(operation.buffer);
    entry.start = segments.pieces.data();
    entry.length = segments.count;
    entry.options |= PTL_IOVEC;
  } else if (request.count == 1) {
    entry.start = request.pieces->iov_base;
    entry.length = operation.length;
  }
  entry.match_id = envelope.peer.process;
  entry.match_bits = key;
  Endpoint& endpoint = *operation.endpoint;
  ptl_handle_me_t* const handle = endpoint.posted().add(operation);
  const int code =
      PtlMEAppend(endpoint.domain().network().interface(), endpoint.portal(Portal::rendezvous),
                  &entry, PTL_PRIORITY_LIST, &operation, handle);
  if (code != PTL_OK) endpoint.posted().remove(operation);
  return code;
}

[[gnu::noinline]] ssize_t send_long(Endpoint& endpoint, const SendRequest& request, size_t length,
                                    const Envelope& envelope) {
  Operation& operation = begin_send(endpoint, OwnerKind::long_send, request, length);
  Source source;
  int code = find_source(operation, request, endpoint.domain().network().acknowledged(),
                         PTL_MD_EVENT_SEND_DISABLE, source);
  if (code != PTL_OK) return give_up(operation, "PtlMDBind", code);
  operation.tag = encode(envelope.peer.process, envelope.peer.index);
  const uint32_t key = endpoint.next_key() & MessageHeader::key_mask;
  code = offer(operation, request, envelope, key);
  if (code != PTL_OK) return give_up(operation, "PtlMEAppend of a long message", code);
  code = make(PutCall{source.descriptor, source.offset, length, PTL_ACK_REQ, envelope.peer.process,
                      envelope.portal, envelope.bits | long_bit, envelope.peer.recipient(),
                      &operation, envelope.header | uint64_t{key} << MessageHeader::key_shift},
              request.deferral);
  if (code != PTL_OK) {
    PtlMEUnlink(endpoint.posted().entry(operation));
    endpoint.posted().remove(operation);
    return give_up(operation, "PtlPut", code);
  }
  return finish_start(operation);
}

void finish_long(Operation& operation) {
  if (!operation.has(is_acknowledged) || !operation.has(is_delivered)) return;
  operation.endpoint->remove_transmit(operation);
  release_source(operation);
  complete_send(operation);
}

}  // namespace

SendRequest request_to_send(const fi_msg& message, uint64_t flags) noexcept {
  const uint64_t header =
      (flags & FI_REMOTE_CQ_DATA) != 0 ? MessageHeader::with_data(message.data) : 0;
  return {message.msg_iov, message.iov_count, message.addr, 0,
          header,          message.context,   flags,        true};
}

SendRequest request_to_send(const fi_msg_tagged& message, uint64_t flags) noexcept {
  const uint64_t header =
      (flags & FI_REMOTE_CQ_DATA) != 0 ? MessageHeader::with_data(message.data) : 0;
  return {message.msg_iov, message.iov_count, message.addr, message.tag,
          header,          message.context,   flags,        false};
}

ssize_t send(Endpoint& endpoint, const SendRequest& request) {
  if (request.count > most_segments) return -FI_EINVAL;
  const size_t length =
      request.count == 1 ? request.pieces->iov_len : total_bytes(request.pieces, request.count);
  if (length > inject_bytes && (request.flags & FI_INJECT) != 0) return -FI_EMSGSIZE;
  const Guard guard(endpoint.domain().lock());
  endpoint.progress_while_sending();
  if (!endpoint.may_begin(request.flags)) return -FI_EAGAIN;
  const Envelope envelope(endpoint, request.target, request.tag, request.header,
                          request.is_message);
  if (length <= inject_bytes && (request.flags & needs_acknowledgment) == 0 &&
      request.deferral == nullptr) [[likely]] {
    const ssize_t code =
        request.count > 1
            ? put_gathered(endpoint, request, length, envelope)
            : put_copy(endpoint, request.count != 0 ? request.pieces->iov_base : nullptr, length,
                       envelope);
    if (code == 0) [[likely]]
      report_sent(endpoint, endpoint.transmit().reports(request.flags), request.context,
                  FI_SEND | (request.is_message ? FI_MSG : FI_TAGGED));
    return code;
  }
  if (!endpoint.may_transmit()) return -FI_EAGAIN;
  // An acknowledgment of a short message may come before it is matched.
  const bool awaits_match = (request.flags & (FI_MATCH_COMPLETE | FI_INJECT)) == FI_MATCH_COMPLETE;
  if (length > settings().eager_bytes || awaits_match)
    return send_long(endpoint, request, length, envelope);
  return send_eager(endpoint, request, length, envelope);
}

void send_ended(Operation& operation, const ptl_event_t& event) {
  operation.endpoint->remove_transmit(operation);
  release_source(operation);
  if (event.ni_fail_type == PTL_NI_OK) [[likely]] {
    complete_send(operation);
  } else {
    fail_send(operation, event.ni_fail_type);
  }
}

void fail_long_send(Operation& operation, ptl_ni_fail_t failure) {
  Endpoint& endpoint = *operation.endpoint;
  if (operation.posted != Operation::not_posted) {
    PtlMEUnlink(endpoint.posted().entry(operation));
    endpoint.posted().remove(operation);
  }
  endpoint.remove_transmit(operation);
  release_source(operation);
  fail_send(operation, failure);
}

void long_send_advanced(Operation& operation, const ptl_event_t& event) {
  PostedTable& posted = operation.endpoint->posted();
  const bool is_posted = operation.posted != Operation::not_posted;
  if (event.type == PTL_EVENT_GET) {
    if (is_posted) posted.remove(operation);
    operation.state |= is_delivered;
    return finish_long(operation);
  }
  if (event.ni_fail_type != PTL_NI_OK) return fail_long_send(operation, event.ni_fail_type);
  operation.state |= is_acknowledged;
  // A posted receive took it. Otherwise the receiver has the header only, and will get the data.
  if (event.ptl_list == PTL_PRIORITY_LIST && is_posted) {
    PtlMEUnlink(posted.entry(operation));
    posted.remove(operation);
    operation.state |= is_delivered;
  }
  finish_long(operation);
}

}  // namespace lintel::ofi

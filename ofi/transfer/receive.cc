#include "transfer/receive.h"

#include <algorithm>

#include "base/limits.h"
#include "base/provider.h"
#include "endpoint/report.h"
#include "endpoint/segments.h"
#include "transfer/calls.h"
#include "transfer/multi_receive.h"

namespace lintel::ofi {
namespace {

constexpr unsigned receive_options =
    PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE;

// Common steps of receives, without a call.

[[gnu::noinline]] ssize_t set_sender(const Endpoint& endpoint, const ReceiveRequest& request,
                                     ptl_me_t& entry) noexcept {
  if (!endpoint.has_addresses()) return -FI_ENOAV;
  const fi_addr_t name = endpoint.addresses().resolve(request.source);
  if (name == FI_ADDR_NOTAVAIL) return -FI_EINVAL;
  const Peer peer(name);
  entry.match_id = peer.process;
  if (request.is_message) {  // which have the index of the sender in the place of a tag
    entry.match_bits = peer.index;
    entry.ignore_bits = long_bit;
  }
  return 0;
}

[[gnu::always_inline]] inline ssize_t set_criteria(const Endpoint& endpoint,
                                                   const ReceiveRequest& request,
                                                   ptl_me_t& entry) noexcept {
  entry.ct_handle = PTL_CT_NONE;
  entry.uid = PTL_UID_ANY;
  entry.min_free = 0;
  entry.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  entry.match_bits = request.tag & ~long_bit;
  entry.ignore_bits = request.ignore | long_bit;
  if (request.source == FI_ADDR_UNSPEC || (endpoint.caps() & FI_DIRECTED_RECV) == 0) [[likely]]
    return 0;
  return set_sender(endpoint, request, entry);
}

[[gnu::noinline]] void note_pieces(Operation& operation, const ReceiveRequest& request) {
  auto* const segments = new Segments;
  std::copy_n(request.pieces, request.count, segments->pieces.begin());
  segments->count = request.count;
  operation.buffer = segments;
  operation.length = total_bytes(request.pieces, request.count);
  operation.state |= has_segments;
}

[[gnu::always_inline]] inline void note_memory(Operation& operation,
                                               const ReceiveRequest& request) {
  if (request.count > 1) [[unlikely]]
    return note_pieces(operation, request);
  operation.buffer = request.count == 1 ? request.pieces->iov_base : nullptr;
  operation.length = request.count == 1 ? request.pieces->iov_len : 0;
}

[[gnu::always_inline]] inline void describe_memory(const Operation& operation, ptl_me_t& entry) {
  if (operation.has(has_segments)) [[unlikely]] {
    auto& segments = *static_cast<Segments*>(operation.buffer);
    entry.start = segments.pieces.data();
    entry.length = segments.count;
    entry.options |= PTL_IOVEC;
  } else {
    entry.start = operation.buffer;
    entry.length = operation.length;
  }
}

void release_memory(Operation& operation) {
  if (!operation.has(has_segments)) return;
  delete static_cast<Segments*>(operation.buffer);
  operation.buffer = nullptr;
}

void unpost(Operation& operation) {
  operation.endpoint->posted().remove(operation);
  operation.endpoint->domain().pump().remove_receive();
}

void withdraw_receive(Operation& operation) {
  unpost(operation);
  release_memory(operation);
  operation.endpoint->abandon(operation);
}

[[gnu::cold]] ssize_t give_up(Operation& operation, ssize_t code) {
  release_memory(operation);
  operation.endpoint->abandon(operation);
  return code;
}

// The description of the entry is read at the threshold.
[[gnu::noinline]] ssize_t post_deferred(Channel& channel, const ptl_me_t& entry,
                                        Operation& operation) {
  Endpoint& endpoint = *operation.endpoint;
  EventPump& pump = endpoint.domain().pump();
  if (channel.has_delayed() || !pump.has_room()) return -FI_EAGAIN;
  Deferral& deferral = deferral_of(operation);
  deferral.entry() = entry;
  (void)endpoint.posted().add(operation);
  pump.add_receive();
  deferral.add(
      [&endpoint, &channel, &deferral, &operation](ptl_handle_ct_t counter, ptl_size_t threshold) {
        return PtlTriggeredMEAppend(endpoint.domain().network().interface(), channel.portal(),
                                    &deferral.entry(), PTL_PRIORITY_LIST, &operation,
                                    &endpoint.posted().entry(operation), counter, threshold);
      });
  const Trigger::Result result = deferral.start(&operation, withdraw_receive);
  if (result.calls != 0) return 0;
  unpost(operation);
  return error_of_start(result.code);
}

// The descriptor that data is got into, and the offset in it.
ptl_handle_md_t reply_descriptor(Operation& operation, ptl_size_t& offset) {
  Domain& domain = operation.endpoint->domain();
  if (!operation.has(has_segments)) {
    offset = reinterpret_cast<ptl_size_t>(operation.buffer);
    return domain.network().replies();
  }
  offset = 0;
  auto& segments = *static_cast<Segments*>(operation.buffer);
  const ptl_md_t description = {.start = segments.pieces.data(),
                                .length = segments.count,
                                .options = PTL_IOVEC | PTL_MD_EVENT_SEND_DISABLE,
                                .eq_handle = domain.network().events(),
                                .ct_handle = PTL_CT_NONE};
  const int code = PtlMDBind(domain.network().interface(), &description, &segments.descriptor);
  if (code != PTL_OK) (void)failed(FI_LOG_EP_DATA, "PtlMDBind", code);
  return segments.descriptor;
}

}  // namespace

void take_memory(Operation& operation, const ReceiveRequest& request) {
  note_memory(operation, request);
}

Arrival arrival_of(const ptl_event_t& event) noexcept {
  const MessageHeader header{event.hdr_data};
  return {header, event.match_bits, event.rlength, encode(event.initiator, header.index()),
          static_cast<uint32_t>(event.remote_offset % most_endpoints)};
}

ssize_t make_criteria(const Endpoint& endpoint, const ReceiveRequest& request,
                      ptl_me_t& entry) noexcept {
  return set_criteria(endpoint, request, entry);
}

fi_addr_t only_sender(const Endpoint& endpoint, const ReceiveRequest& request,
                      const ptl_me_t& entry) noexcept {
  return entry.match_id.phys.nid == PTL_NID_ANY ? FI_ADDR_NOTAVAIL
                                                : endpoint.addresses().resolve(request.source);
}

void fail_directed_receive(Operation& operation, ptl_ni_fail_t failure) {
  if (operation.kind == OwnerKind::multi_receive)
    return end_multi_receive(operation, error_of_failure(failure));
  if (PtlMEUnlink(operation.endpoint->posted().entry(operation)) != PTL_OK) return;
  unpost(operation);
  release_memory(operation);
  fail_receive(operation, error_of_failure(failure), static_cast<int>(failure));
}

ReceiveRequest request_to_receive(const fi_msg& message, uint64_t flags) noexcept {
  return {message.msg_iov, message.iov_count, message.addr, 0,
          any_sender,      message.context,   flags,        true};
}

ReceiveRequest request_to_receive(const fi_msg_tagged& message, uint64_t flags) noexcept {
  return {message.msg_iov, message.iov_count, message.addr, message.tag,
          message.ignore,  message.context,   flags,        false};
}

ssize_t post_receive(Endpoint& endpoint, const ReceiveRequest& request) {
  if (request.count > most_segments) return -FI_EINVAL;
  if ((request.flags & FI_MULTI_RECV) != 0) return post_multi_receive(endpoint, request);
  const Guard guard(endpoint.domain().lock());
  ptl_me_t entry;
  if (const ssize_t code = set_criteria(endpoint, request, entry); code != 0) return code;
  entry.options = receive_options | endpoint.receive().entry_options;
  Operation& operation =
      endpoint.begin_operation(OwnerKind::receive, request.context, request.deferral);
  operation.state |= static_cast<uint8_t>(
      (endpoint.receive().reports(request.flags, request.deferral) ? reports_completion : 0) |
      (request.is_message ? is_message : 0));
  operation.tag = request.tag;
  operation.header = entry.match_id.phys.nid == PTL_NID_ANY ? FI_ADDR_NOTAVAIL
                                                            : only_sender(endpoint, request, entry);
  note_memory(operation, request);
  describe_memory(operation, entry);
  Channel& channel = endpoint.channel(request.is_message);
  const ssize_t code = request.deferral == nullptr ? channel.post(entry, operation)
                                                   : post_deferred(channel, entry, operation);
  if (code != 0) return give_up(operation, code);
  // The data of a long message may be there to be got.
  if (endpoint.domain().progresses_itself()) endpoint.domain().progress();
  return 0;
}

ssize_t post_plain_receive(Endpoint& endpoint, void* buffer, size_t length, uint64_t tag,
                           uint64_t ignore, void* context) {
  const Guard guard(endpoint.domain().lock());
  auto& operation = *static_cast<Operation*>(context);
  operation.kind = OwnerKind::receive;
  operation.state = reports_completion;
  operation.endpoint = &endpoint;
  operation.context = context;
  operation.buffer = buffer;
  operation.length = length;
  operation.tag = tag;
  operation.header = FI_ADDR_NOTAVAIL;
  const ptl_me_t entry = {.start = buffer,
                          .length = length,
                          .ct_handle = PTL_CT_NONE,
                          .uid = PTL_UID_ANY,
                          .options = receive_options,
                          .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                          .match_bits = tag & ~long_bit,
                          .ignore_bits = ignore | long_bit,
                          .min_free = 0};
  operation.posted = Operation::not_posted;
  return endpoint.channel(false).post(entry, operation);
}

void receive_arrived(Operation& operation, const ptl_event_t& event) {
  unpost(operation);
  Endpoint& endpoint = *operation.endpoint;
  constexpr uint8_t relevant = reports_completion | is_pooled | is_deferred | has_segments;
  if ((operation.state & relevant) == reports_completion && endpoint.common().reports &&
      event.ni_fail_type == PTL_NI_OK && event.mlength == event.rlength) [[likely]] {
    const MessageHeader header{event.hdr_data};
    const bool is_named = (endpoint.caps() & FI_SOURCE) != 0;
    const fi_addr_t source =
        is_named ? endpoint.addresses().find(encode(event.initiator, header.index()))
                 : FI_ADDR_NOTAVAIL;
    if (!is_named || source != FI_ADDR_NOTAVAIL) [[likely]]
      return endpoint.receive().queue->push(
          {operation.context, receive_flags(operation, header), event.mlength, operation.buffer,
           header.data(), reported_tag(operation, event.match_bits)},
          source);
  }
  if (event.ni_fail_type != PTL_NI_OK) [[unlikely]] {
    release_memory(operation);
    fail_receive(operation, error_of_failure(event.ni_fail_type),
                 static_cast<int>(event.ni_fail_type));
    return;
  }
  if (operation.has(has_segments)) release_memory(operation);
  complete_receive(operation, arrival_of(event), event.mlength);
}

void receive_found_header(Operation& operation, const ptl_event_t& event) {
  unpost(operation);
  const Arrival arrival = arrival_of(event);
  if ((arrival.bits & long_bit) != 0) return fetch(operation, arrival);
  const size_t kept = std::min<size_t>(event.mlength, operation.length);
  bool is_copied = false;
  if (operation.has(has_segments)) {
    auto& segments = *static_cast<Segments*>(operation.buffer);
    is_copied = scatter(segments.pieces.data(), segments.count, event.start, kept);
    release_memory(operation);
  } else {
    is_copied = copy_payload(operation.buffer, event.start, kept);
  }
  if (!is_copied) return fail_receive(operation, FI_EFAULT, PTL_NI_SEGV);
  complete_receive(operation, arrival, kept);
}

void fetch(Operation& operation, const Arrival& arrival, OwnerKind kind) {
  const Peer sender(arrival.sender);
  operation.kind = kind;
  operation.tag = arrival.bits;
  operation.header = arrival.header.with_key(arrival.recipient).bits;  // the key is used below
  operation.extra = arrival.length;
  operation.set_sender(sender.process);
  // The length 0 also tells the sender that its message is not needed any more.
  const size_t wanted = std::min(arrival.length, operation.length);
  ptl_size_t offset = 0;
  const ptl_handle_md_t descriptor = reply_descriptor(operation, offset);
  operation.endpoint->add_transmits(operation);
  const int code = PtlGet(descriptor, offset, wanted, sender.process,
                          sender.portal(Portal::rendezvous), arrival.header.key(), 0, &operation);
  if (code == PTL_OK) return;
  (void)failed(FI_LOG_EP_DATA, "PtlGet", code);
  ptl_event_t failure{};
  failure.ni_fail_type = PTL_NI_UNDELIVERABLE;
  if (kind == OwnerKind::fetch) {
    fetch_ended(operation, failure);
  } else {
    part_fetched(operation, failure);
  }
}

void fetch_ended(Operation& operation, const ptl_event_t& event) {
  operation.endpoint->remove_transmit(operation);
  release_memory(operation);
  const MessageHeader header{operation.header};
  const Arrival arrival = {header, operation.tag, operation.extra,
                           encode(operation.sender(), header.index()), header.key()};
  if (event.ni_fail_type != PTL_NI_OK) {
    fail_receive(operation, error_of_failure(event.ni_fail_type),
                 static_cast<int>(event.ni_fail_type));
    return;
  }
  complete_receive(operation, arrival, event.mlength);
}

ssize_t cancel_receive(Endpoint& endpoint, void* context) {
  const Guard guard(endpoint.domain().lock());
  for (const bool is_message_channel : {false, true}) {
    Channel& channel = endpoint.channel(is_message_channel);
    Operation* const operation = channel.withdraw_delayed(context);
    if (operation == nullptr) continue;
    const bool is_multi = operation->kind == OwnerKind::multi_receive;
    if (!is_multi) release_memory(*operation);
    fail_receive(*operation, FI_ECANCELED, 0, is_multi ? FI_MULTI_RECV : 0);
    return 0;
  }
  Operation* const operation = endpoint.posted().find_receive(context);
  if (operation == nullptr) return 0;
  if (operation->kind == OwnerKind::multi_receive) {
    end_multi_receive(*operation, FI_ECANCELED);
    return 0;
  }
  if (PtlMEUnlink(endpoint.posted().entry(*operation)) != PTL_OK) return 0;  // it will complete
  unpost(*operation);
  release_memory(*operation);
  fail_receive(*operation, FI_ECANCELED, 0);
  return 0;
}

}  // namespace lintel::ofi

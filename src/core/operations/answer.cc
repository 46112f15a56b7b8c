// Building, batching and sending answers. Message path.
#include "core/operations/answer.h"

namespace lintel {

namespace {

bool answered_by_reply(const MessageHeader& request) noexcept {
  return request.kind == MessageKind::get || request.kind == MessageKind::fetch_atomic ||
         request.kind == MessageKind::swap;
}

}  // namespace

bool expects_answer(const MessageHeader& request) noexcept {
  return answered_by_reply(request) || request.asks_for_ack() ||
         (request.flags & flag_remote_memory) != 0;
}

MessageHeader answer_header(const MessageHeader& request, MessageKind kind,
                            const Outcome& outcome) noexcept {
  MessageHeader header{};
  header.kind = kind;
  if (outcome.list == PTL_OVERFLOW_LIST) header.flags |= flag_overflow_list;
  header.operation = static_cast<uint8_t>(outcome.fail);
  if (outcome.source_fault) header.modes |= answer_source_fault;
  header.cookie = request.cookie;
  header.set_length(outcome.mlength);
  header.remote_offset = outcome.offset;
  return header;
}

void answer(PhysicalInterface& physical, Peer& peer, const MessageHeader& request,
            const Outcome& outcome) noexcept {
  if (!expects_answer(request)) return;
  if (answered_by_reply(request)) {
    MessageHeader header = answer_header(request, MessageKind::reply, outcome);
    header.flags |= flag_remote_memory;  // no data follow
    physical.answers().send(peer, header, nullptr, 0);
    return;
  }
  const bool exact = outcome.fail == PTL_NI_OK && outcome.mlength == request.length() &&
                     outcome.offset == request.remote_offset && outcome.list == PTL_PRIORITY_LIST;
  if (exact) {
    physical.answers().acknowledge_exactly(peer, request.cookie);
  } else {
    physical.answers().send(peer, answer_header(request, MessageKind::ack, outcome), nullptr, 0);
  }
}

void answer_refused(PhysicalInterface& physical, Peer& peer, const MessageHeader& request,
                    Refusal reason, ptl_ni_fail_t fail) noexcept {
  physical.refused_requests.note(reason, peer.id, request);
  const bool by_reply = answered_by_reply(request);
  MessageKind kind = by_reply ? MessageKind::reply : MessageKind::ack;
  if (!expects_answer(request)) {
    if ((request.flags & flag_tell_refusal) == 0) return;
    kind = MessageKind::refusal;
  }
  MessageHeader header =
      answer_header(request, kind, {.fail = fail, .offset = request.remote_offset});
  if (by_reply) header.flags |= flag_remote_memory;  // no data follow
  // The log of the initiator prints these: the initiator may have no record of the request.
  header.pt_index = request.pt_index;
  header.match_bits = request.match_bits;
  header.hdr_data = refusal_word(reason, request.kind);
  physical.answers().send(peer, header, nullptr, 0);
}

void reply(PhysicalInterface& physical, Peer& peer, const MessageHeader& request,
           const Outcome& outcome, const std::byte* data) noexcept {
  const Piece piece{const_cast<std::byte*>(data), outcome.mlength};
  physical.answers().send(peer, answer_header(request, MessageKind::reply, outcome), &piece,
                          outcome.mlength != 0 ? 1 : 0);
}

}  // namespace lintel

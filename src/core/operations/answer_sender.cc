#include "core/operations/answer_sender.h"

#include <algorithm>

#include "util/address_space.h"
#include "util/assert.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

namespace {
// Address space until used. Twice as many answers as one process can have operations outstanding,
// for all processes together. Answers beyond that are dropped: a request cannot be left in its
// link, where acknowledgements and replies that this process waits for come behind it.
constexpr uint32_t most_answers = 1u << 21;

// Memory of a pool up to this is kept for the next peer.
constexpr size_t kept_bytes = 1 << 20;

template <typename T>
bool is_mostly_unused(const Arena<T>& pool, const std::atomic<uint32_t>& in_use) noexcept {
  const uint32_t used = pool.high_water();
  return size_t{used} * sizeof(T) > kept_bytes && in_use.load(std::memory_order_relaxed) < used / 2;
}

static_assert(short_answer_bytes >= ack_batch_capacity * sizeof(uint32_t));

bool answered_by_reply(const MessageHeader& request) noexcept {
  return request.kind == MessageKind::get || request.kind == MessageKind::fetch_atomic ||
         request.kind == MessageKind::swap;
}

// Whether the initiator expects an acknowledgement or a reply.
bool expects_answer(const MessageHeader& request) noexcept {
  return answered_by_reply(request) || request.asks_for_ack() ||
         (request.flags & flag_remote_memory) != 0;
}
}  // namespace

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

bool AnswerSender::open(uint32_t long_answers) noexcept {
  return answers_.open(fitting_capacity(most_answers, sizeof(Answer))) &&
         long_payloads_.open(fitting_capacity(long_answers, sizeof(LongPayload)));
}

void AnswerSender::send(Peer& peer, const MessageHeader& header, const Piece* pieces,
                        unsigned count) noexcept {
  uint64_t payload_length = 0;
  for (unsigned i = 0; i < count; ++i) payload_length += pieces[i].length;
  const LockGuard guard(peer.send_lock);
  if (peer.failed.load(std::memory_order_relaxed)) [[unlikely]]
    return;
  peer.sent.count(header.kind, payload_length);
  if (peer.queue.head == nullptr) [[likely]] {
    const SendStatus status = peer.route.transport->send(*peer.route.link, header, pieces, count);
    peer.note_in_process_send();
    if (status == SendStatus::sent || status == SendStatus::peer_failed) [[likely]]
      return;
  }
  queue(peer, header, pieces, count, payload_length);
}

void AnswerSender::answer(Peer& peer, const MessageHeader& request, const Outcome& outcome,
                          const std::byte* data) noexcept {
  if (!expects_answer(request)) return;
  const bool by_reply = answered_by_reply(request);
  const bool exact = outcome.fail == PTL_NI_OK && outcome.mlength == request.length() &&
                     outcome.offset == request.remote_offset && outcome.list == PTL_PRIORITY_LIST;
  if (exact && !by_reply) return acknowledge_exactly(peer, request.cookie);
  MessageHeader header =
      answer_header(request, by_reply ? MessageKind::reply : MessageKind::ack, outcome);
  const bool carries_data = data != nullptr && outcome.mlength != 0;
  if (by_reply && !carries_data) header.flags |= flag_remote_memory;  // no data follow
  const Piece piece{const_cast<std::byte*>(data), outcome.mlength};
  send(peer, header, &piece, carries_data ? 1 : 0);
}

void AnswerSender::refuse(Peer& peer, const MessageHeader& request, Refusal reason,
                          ptl_ni_fail_t fail) noexcept {
  refused_.note(reason, peer.id, request);
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
  send(peer, header, nullptr, 0);
}

void AnswerSender::report_shortage(const Peer& peer, bool tells_initiator) noexcept {
  static std::atomic<bool> said_failed{false};
  static std::atomic<bool> said_dropped{false};
  const ProcessText initiator(peer.id.nid, peer.id.pid);
  if (tells_initiator)
    log_once(said_failed, LogLevel::error,
             "too many answers wait for %s: its gets and fetches fail as PTL_NI_UNDELIVERABLE",
             initiator.c_str());
  else
    log_once(said_dropped, LogLevel::error, "too many answers wait for %s: some are dropped",
             initiator.c_str());
}

Answer* AnswerSender::allocate(Peer& peer, uint64_t payload_length) noexcept {
  const bool with_payload = payload_length > short_answer_bytes;
  if (!may_take(peer.queue.answers, most_answers, in_use_.load(std::memory_order_relaxed),
                answers_.capacity()) ||
      (with_payload && !may_take(peer.queue.long_answers, most_long_answers_of_peer, long_answers(),
                                 long_payloads_.capacity())))
    return nullptr;
  // Another thread may have taken the last free answer.
  const uint32_t index = answers_.allocate();
  if (index == Arena<Answer>::no_index) return nullptr;
  const uint32_t payload = with_payload ? long_payloads_.allocate() : Arena<LongPayload>::no_index;
  if (with_payload && payload == Arena<LongPayload>::no_index) {
    answers_.release(index);
    return nullptr;
  }
  Answer& answer = answers_.at(index);
  answer.payload_length = static_cast<uint32_t>(payload_length);
  answer.long_payload = payload;
  ++peer.queue.answers;
  in_use_.fetch_add(1, std::memory_order_relaxed);
  if (!with_payload) return &answer;
  ++peer.queue.long_answers;
  long_in_use_.fetch_add(1, std::memory_order_relaxed);
  return &answer;
}

void AnswerSender::release(Peer& peer, Answer& answer) noexcept {
  LINTEL_ASSERT(peer.queue.answers != 0);
  if (is_long(answer)) {
    LINTEL_ASSERT(peer.queue.long_answers != 0);
    long_payloads_.release(answer.long_payload);
    --peer.queue.long_answers;
    long_in_use_.fetch_sub(1, std::memory_order_relaxed);
  }
  answers_.release(answer);
  --peer.queue.answers;
  in_use_.fetch_sub(1, std::memory_order_relaxed);
}

void AnswerSender::give_back() noexcept {
  if (is_mostly_unused(answers_, in_use_)) answers_.trim();
  if (is_mostly_unused(long_payloads_, long_in_use_)) long_payloads_.trim();
}

// A reply without its data. The target has done the operation: its memory and events say so, and
// only this message is not delivered. The initiator cannot distinguish this from a target that died
// before it answered (spec 3.13.3).
MessageHeader AnswerSender::failed_reply(const MessageHeader& reply) noexcept {
  MessageHeader header = reply;
  header.operation = PTL_NI_UNDELIVERABLE;
  header.flags |= flag_remote_memory;  // no data follow
  header.set_length(0);
  return header;
}

void AnswerSender::queue(Peer& peer, const MessageHeader& header, const Piece* pieces,
                         unsigned count, uint64_t payload_length) noexcept {
  Answer* answer = allocate(peer, payload_length);
  const bool whole = answer != nullptr;
  if (!whole) [[unlikely]] {
    refused_.messages.increment();
    if (payload_length > short_answer_bytes) answer = allocate(peer, 0);
    report_shortage(peer, answer != nullptr);
    if (answer == nullptr) return;
    count = 0;
  }
  answer->header = whole ? header : failed_reply(header);
  std::byte* to = payload_of(*answer);
  for (unsigned i = 0; i < count; ++i) to = std::copy_n(pieces[i].base, pieces[i].length, to);
  queues_.enqueue(peer, *answer);
}

void AnswerSender::send_acknowledgements(Peer& peer) noexcept {
  const uint32_t count = peer.acks.count;
  peer.acks.count = 0;
  uint32_t done;
  {
    const LockGuard guard(peer.send_lock);
    if (peer.failed.load(std::memory_order_relaxed)) [[unlikely]]
      return;
    done = peer.route.transport->acknowledge(*peer.route.link, peer.acks.cookies, count);
    peer.note_in_process_send();
    if (done != 0) peer.sent.count(MessageKind::ack_batch, 0);
  }
  if (done != count) send_ack_batch(peer, peer.acks.cookies + done, count - done);
}

// The transport has no room for acknowledgements, or carries none without a message.
void AnswerSender::send_ack_batch(Peer& peer, uint32_t* cookies, uint32_t count) noexcept {
  MessageHeader header{};
  header.kind = MessageKind::ack_batch;
  if (count == 1) {
    header.cookie = *cookies;
    return send(peer, header, nullptr, 0);
  }
  const uint64_t bytes = count * sizeof(uint32_t);
  header.set_length(bytes);
  const Piece piece{reinterpret_cast<std::byte*>(cookies), bytes};
  send(peer, header, &piece, 1);
}

bool AnswerSender::send_queued(Peer& peer, Answer& answer) noexcept {
  const Piece piece{payload_of(answer), answer.payload_length};
  const SendStatus status = peer.route.transport->send(*peer.route.link, answer.header, &piece,
                                                       answer.payload_length != 0 ? 1 : 0);
  if (status == SendStatus::queue_full || status == SendStatus::connecting) return false;
  release(peer, answer);
  return true;
}

}  // namespace lintel

#include "core/operations/answer_sender.h"

#include <algorithm>
#include <mutex>

#include "util/log.h"
#include "util/node_identity.h"

namespace lintel {

namespace {
// Address space until used. Twice as many answers as one process can have operations outstanding.
constexpr uint32_t most_answers = 1u << 21;
constexpr uint32_t most_long_payloads = 1u << 18;

static_assert(short_answer_bytes >= ack_batch_capacity * sizeof(uint32_t));
}  // namespace

bool AnswerSender::open() noexcept {
  return answers_.open(most_answers) && long_payloads_.open(most_long_payloads);
}

[[gnu::always_inline]] inline void AnswerSender::send_or_queue(Peer& peer,
                                                               const MessageHeader& header,
                                                               const Piece* pieces, unsigned count,
                                                               uint64_t payload_length) noexcept {
  std::lock_guard guard(peer.send_lock);
  if (peer.failed.load(std::memory_order_relaxed)) [[unlikely]]
    return;
  peer.sent.count(header.kind, payload_length);
  if (peer.queue_head == nullptr) [[likely]] {
    const SendStatus status = peer.transport->send(*peer.link, header, pieces, count);
    peer.note_in_process_send();
    if (status == SendStatus::sent || status == SendStatus::peer_failed) [[likely]]
      return;
  }
  queue(peer, header, pieces, count, payload_length);
}

void AnswerSender::send(Peer& peer, const MessageHeader& header, const Piece* pieces,
                        unsigned count) noexcept {
  uint64_t payload_length = 0;
  for (unsigned i = 0; i < count; ++i) payload_length += pieces[i].length;
  send_or_queue(peer, header, pieces, count, payload_length);
}

Answer* AnswerSender::allocate(uint64_t payload_length) noexcept {
  const uint32_t index = answers_.allocate();
  if (index == Arena<Answer>::no_index) return nullptr;
  Answer& answer = answers_.at(index);
  answer.payload_length = static_cast<uint32_t>(payload_length);
  if (!is_long(answer)) return &answer;
  answer.long_payload = long_payloads_.allocate();
  if (answer.long_payload != Arena<LongPayload>::no_index) return &answer;
  answers_.release(index);
  return nullptr;
}

void AnswerSender::queue(Peer& peer, const MessageHeader& header, const Piece* pieces,
                         unsigned count, uint64_t payload_length) noexcept {
  Answer* const answer = allocate(payload_length);
  if (answer == nullptr) {
    refused_.increment();
    static std::atomic<bool> said{false};
    log_once(said, LogLevel::error, "too many answers wait for %s: some are dropped",
             ProcessText(peer.id.nid, peer.id.pid).c_str());
    return;
  }
  answer->kind = QueuedSend::Kind::answer;
  answer->header = header;
  std::byte* to = payload_of(*answer);
  for (unsigned i = 0; i < count; ++i) to = std::copy_n(pieces[i].base, pieces[i].length, to);
  queues_.enqueue(peer, *answer);
}

void AnswerSender::send_acknowledgements(Peer& peer) noexcept {
  MessageHeader header{};
  header.kind = MessageKind::ack_batch;
  const uint32_t count = peer.ack_count;
  peer.ack_count = 0;
  if (count == 1) {
    header.cookie = peer.acks[0];
    send_or_queue(peer, header, nullptr, 0, 0);
    return;
  }
  const uint64_t bytes = count * sizeof(uint32_t);
  header.set_length(bytes);
  const Piece piece{reinterpret_cast<std::byte*>(peer.acks), bytes};
  send(peer, header, &piece, 1);
}

bool AnswerSender::send_queued(Peer& peer, Answer& answer) noexcept {
  const Piece piece{payload_of(answer), answer.payload_length};
  const SendStatus status =
      peer.transport->send(*peer.link, answer.header, &piece, answer.payload_length != 0 ? 1 : 0);
  if (status == SendStatus::queue_full || status == SendStatus::connecting) return false;
  release(answer);
  return true;
}

}  // namespace lintel

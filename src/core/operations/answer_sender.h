// Sends or queues the answers of a target. Gathers acknowledgements that report nothing but
// success. Message path.
#pragma once

#include "core/operations/peer.h"
#include "core/operations/send_queues.h"
#include "transport/polling.h"

namespace lintel {

class AnswerSender {
 public:
  AnswerSender(SendQueues& queues, SharedCounter& refused) noexcept
      : queues_(queues), refused_(refused) {}
  // Set-up path. At most so many answers of more than short_answer_bytes wait, of all peers; see
  // may_take(). False: no address space.
  [[nodiscard]] bool open(uint32_t long_answers = most_long_answers) noexcept;

  // The pieces hold at most largest_reply_bytes.
  void send(Peer& peer, const MessageHeader& header, const Piece* pieces, unsigned count) noexcept
      LINTEL_REQUIRES(polling);
  // Acknowledges with the next flush_acknowledgements().
  void acknowledge_exactly(Peer& peer, uint32_t cookie) noexcept LINTEL_REQUIRES(polling) {
    peer.acks[peer.ack_count++] = cookie;
    if (peer.ack_count == ack_batch_capacity) [[unlikely]]
      flush_acknowledgements(peer);
  }
  void flush_acknowledgements(Peer& peer) noexcept LINTEL_REQUIRES(polling) {
    if (peer.ack_count != 0) send_acknowledgements(peer);
  }

  // Sends an answer from the queue. False: no room.
  [[nodiscard]] bool send_queued(Peer& peer, Answer& answer) noexcept
      LINTEL_REQUIRES(peer.send_lock);
  // The answer has left the queue.
  void release(Peer& peer, Answer& answer) noexcept LINTEL_REQUIRES(peer.send_lock);
  // Connection path. A peer is gone: its memory goes back to the system, if there was much of it.
  void give_back() noexcept;
  [[nodiscard]] uint32_t long_answers() const noexcept {
    return long_in_use_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t most_long_answers = 1u << 18;

  static bool is_long(const Answer& answer) noexcept {
    return answer.payload_length > short_answer_bytes;
  }
  [[nodiscard]] std::byte* payload_of(Answer& answer) noexcept {
    return is_long(answer) ? long_payloads_.at(answer.long_payload).bytes : answer.payload;
  }
  // nullptr: none is free.
  [[nodiscard]] Answer* allocate(Peer& peer, uint64_t payload_length) noexcept
      LINTEL_REQUIRES(peer.send_lock);
  [[nodiscard]] static MessageHeader failed_reply(const MessageHeader& reply) noexcept;
  static void report_shortage(const Peer& peer, bool tells_initiator) noexcept;
  void send_acknowledgements(Peer& peer) noexcept LINTEL_REQUIRES(polling);
  void send_or_queue(Peer& peer, const MessageHeader& header, const Piece* pieces, unsigned count,
                     uint64_t payload_length) noexcept LINTEL_REQUIRES(polling);
  void queue(Peer& peer, const MessageHeader& header, const Piece* pieces, unsigned count,
             uint64_t payload_length) noexcept LINTEL_REQUIRES(peer.send_lock);

  SendQueues& queues_;
  SharedCounter& refused_;
  Arena<Answer> answers_;
  Arena<LongPayload> long_payloads_;
  std::atomic<uint32_t> in_use_{0};
  std::atomic<uint32_t> long_in_use_{0};
};

}  // namespace lintel

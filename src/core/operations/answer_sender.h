// The answers of a target: acknowledgements, replies, refusals (spec 3.13.3, 3.15.1, 4.2). Sends or
// queues them. Gathers acknowledgements that report nothing but success. Message path.
#pragma once

#include "core/operations/peer.h"
#include "core/operations/refused_requests.h"
#include "core/operations/send_queues.h"
#include "transport/polling.h"

namespace lintel {

// Outcome of an operation at the target, as reported to the initiator.
struct Outcome {
  ptl_ni_fail_t fail = PTL_NI_OK;
  uint64_t mlength = 0;
  uint64_t offset = 0;  // used in the entry
  ptl_list_t list = PTL_PRIORITY_LIST;
  bool source_fault = false;  // the initiator's own memory was not accessible
};
[[nodiscard]] MessageHeader answer_header(const MessageHeader& request, MessageKind kind,
                                          const Outcome& outcome) noexcept;

class AnswerSender {
 public:
  AnswerSender(SendQueues& queues, RefusedRequests& refused) noexcept
      : queues_(queues), refused_(refused) {}
  // Set-up path. At most so many answers of more than short_answer_bytes wait, of all peers; see
  // may_take(). False: no address space.
  [[nodiscard]] bool open(uint32_t long_answers = most_long_answers) noexcept;

  // Acknowledges a put or atomic, or ends a get, fetch or swap: with `data` of outcome.mlength
  // bytes, or with none. Nothing if the initiator does not wait to hear of the operation.
  void answer(Peer& peer, const MessageHeader& request, const Outcome& outcome,
              const std::byte* data = nullptr) noexcept LINTEL_REQUIRES(polling);
  // Answers a request that goes no further; counts it and tells the log of both ends.
  void refuse(Peer& peer, const MessageHeader& request, Refusal reason, ptl_ni_fail_t fail) noexcept
      LINTEL_REQUIRES(polling);

  // The pieces hold at most largest_reply_bytes.
  void send(Peer& peer, const MessageHeader& header, const Piece* pieces, unsigned count) noexcept
      LINTEL_REQUIRES(polling);
  // Acknowledges with the next flush_acknowledgements().
  void acknowledge_exactly(Peer& peer, uint32_t cookie) noexcept LINTEL_REQUIRES(polling) {
    peer.acks.cookies[peer.acks.count++] = cookie;
    if (peer.acks.count == ack_batch_capacity) [[unlikely]]
      flush_acknowledgements(peer);
  }
  void flush_acknowledgements(Peer& peer) noexcept LINTEL_REQUIRES(polling) {
    if (peer.acks.count != 0) send_acknowledgements(peer);
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
  // Returns nullptr if none is free.
  [[nodiscard]] Answer* allocate(Peer& peer, uint64_t payload_length) noexcept
      LINTEL_REQUIRES(peer.send_lock);
  [[nodiscard]] static MessageHeader failed_reply(const MessageHeader& reply) noexcept;
  static void report_shortage(const Peer& peer, bool tells_initiator) noexcept;
  void send_acknowledgements(Peer& peer) noexcept LINTEL_REQUIRES(polling);
  void send_ack_batch(Peer& peer, uint32_t* cookies, uint32_t count) noexcept
      LINTEL_REQUIRES(polling);
  void queue(Peer& peer, const MessageHeader& header, const Piece* pieces, unsigned count,
             uint64_t payload_length) noexcept LINTEL_REQUIRES(peer.send_lock);

  SendQueues& queues_;
  RefusedRequests& refused_;
  Arena<Answer> answers_;
  Arena<LongPayload> long_payloads_;
  std::atomic<uint32_t> in_use_{0};
  std::atomic<uint32_t> long_in_use_{0};
};

}  // namespace lintel

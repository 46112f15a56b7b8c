// Answers as they arrive at the initiator (spec 4.2.2), and operations whose peer is gone. Message
// path.
#pragma once

#include "core/operations/answer_sender.h"
#include "core/operations/initiator_events.h"
#include "core/operations/operation_table.h"
#include "core/operations/refused_requests.h"
#include "core/operations/send_queues.h"
#include "core/operations/staging.h"
#include "transport/polling.h"

namespace lintel {

class InitiatorAnswers final : private StagingClient {
 public:
  // `answers` sends requests for data.
  InitiatorAnswers(OperationTable& operations, SendQueues& queues, Staging& staging,
                   AnswerSender& answers, RefusedRequests& refused) noexcept
      : operations_(operations),
        queues_(queues),
        staging_(staging),
        answers_(answers),
        refused_(refused) {}

  void take_ack(Peer& peer, const MessageHeader& header) noexcept LINTEL_REQUIRES(polling);
  void take_ack_batch(Peer& peer, const InboundMessage& message) noexcept LINTEL_REQUIRES(polling) {
    if (message.payload_length == 0) return take_single_ack(peer, message.header.cookie);
    take_acks(peer, message.payload, message.payload_length / sizeof(uint32_t));
  }
  // Operations that succeeded. `cookies`: uint32_t, at least one.
  void take_single_ack(Peer& peer, uint32_t cookie) noexcept LINTEL_REQUIRES(polling);
  void take_acks(Peer& peer, const std::byte* cookies, uint32_t count) noexcept
      LINTEL_REQUIRES(polling);
  void take_reply(Peer& peer, const InboundMessage& message) noexcept LINTEL_REQUIRES(polling);
  // A part of the answer to a get whose memory the target cannot reach.
  void take_reply_data(Peer& peer, const InboundMessage& message) noexcept LINTEL_REQUIRES(polling);
  // The target of a long put asks for its data.
  void take_data_request(Peer& peer, const MessageHeader& header) noexcept LINTEL_REQUIRES(polling);
  // From the send queue: sends data messages of a long put until all are sent (true) or there is no
  // room.
  [[nodiscard]] bool send_data(Peer& peer, Operation& operation) noexcept LINTEL_REQUIRES(polling)
      LINTEL_REQUIRES(peer.send_lock);
  // The peer is gone: its operations end as PTL_NI_UNDELIVERABLE.
  void fail_all_of(Peer& peer) noexcept LINTEL_REQUIRES(polling);
  // A logical interface goes. First its copies to devices are stopped; when none is under way, its
  // operations are dropped without events.
  void stop_copies(const NetworkInterface& interface) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] bool copies_under_way(const NetworkInterface& interface) noexcept
      LINTEL_REQUIRES(polling);
  void drop_all_of(const NetworkInterface& interface) noexcept LINTEL_REQUIRES(polling);

 private:
  void on_staged(StagedStream& stream) noexcept override LINTEL_REQUIRES(polling);
  [[nodiscard]] Operation* operation_of(const Peer& peer, uint32_t cookie) const noexcept;
  [[nodiscard]] Operation* operation_once_sent(Peer& peer, uint32_t cookie) noexcept;
  [[nodiscard]] Operation* answered_operation(Peer& peer, uint32_t cookie) noexcept;
  [[nodiscard]] Operation* acknowledged_operation(Peer& peer, uint32_t cookie) noexcept;
  template <typename ResultOf>
  [[nodiscard]] Count end_awaited_put(Peer& peer, uint32_t cookie,
                                      const ResultOf& result_of) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] Count end_awaited_put(Peer& peer, uint32_t cookie) noexcept
      LINTEL_REQUIRES(polling);
  [[nodiscard]] Count end_acknowledged(Peer& peer, uint32_t cookie) noexcept
      LINTEL_REQUIRES(polling);
  void end_single(Peer& peer, uint32_t cookie) noexcept LINTEL_REQUIRES(polling);
  void end_getting(Operation& operation, const AnswerResult& result) noexcept
      LINTEL_REQUIRES(polling);
  void fail(Operation& operation) noexcept LINTEL_REQUIRES(polling);
  void continue_sending(Peer& peer, Operation& operation) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] bool begin_staging(Operation& operation, uint64_t begin, uint64_t end) noexcept
      LINTEL_REQUIRES(polling);
  void end_staging(Operation& operation) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] bool next_part(Operation& operation, uint64_t most, MessageHeader& header,
                               Piece* pieces, unsigned& count) noexcept LINTEL_REQUIRES(polling);
  void end_sending(Operation& operation, ptl_ni_fail_t fail) noexcept LINTEL_REQUIRES(polling);
  void take_offer(Peer& peer, Operation& operation, const MessageHeader& header) noexcept
      LINTEL_REQUIRES(polling);
  void request_data(Peer& peer, Operation& operation) noexcept LINTEL_REQUIRES(polling);
  void take_staged_data(Peer& peer, Operation& operation, const InboundMessage& message) noexcept
      LINTEL_REQUIRES(polling);
  void end_staged_get(Operation& operation, const AnswerResult& result) noexcept
      LINTEL_REQUIRES(polling);
  void end_with_copies(Operation& operation) noexcept LINTEL_REQUIRES(polling);

  OperationTable& operations_;
  SendQueues& queues_;
  Staging& staging_;
  AnswerSender& answers_;
  RefusedRequests& refused_;
};

}  // namespace lintel

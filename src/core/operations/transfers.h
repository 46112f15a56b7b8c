// Messages at the target that are longer than one message of the transport (spec 2.6). Message
// path.
#pragma once

#include "core/operations/answer_sender.h"
#include "core/operations/refused_requests.h"
#include "core/operations/send_queues.h"
#include "core/operations/staging.h"
#include "core/operations/transfer_table.h"
#include "transport/polling.h"

namespace lintel {

class Transfers final : private StagingClient {
 public:
  Transfers(AnswerSender& answers, SendQueues& queues, Staging& staging, RefusedRequests& refused,
            PollFlag& work_due) noexcept
      : answers_(answers),
        queues_(queues),
        staging_(staging),
        refused_(refused),
        table_(work_due) {}
  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept { return table_.open(); }
  [[nodiscard]] TransferTable& table() noexcept { return table_; }
  [[nodiscard]] const TransferTable& table() const noexcept { return table_; }

  // Starts moving the payload of a message that matched and is too long for one message; `message`
  // describes the initiator's memory, if that can be reached. The lock of the portal table entry is
  // not held; entry and portal count the operation already.
  void start(Transfer& transfer, const InboundMessage& message) noexcept LINTEL_REQUIRES(polling);
  // Handles data that were requested for a long put.
  void take_data(Peer& peer, const InboundMessage& message) noexcept LINTEL_REQUIRES(polling);
  // The initiator of a get with get_in_windows has room for more data.
  void take_data_request(Peer& peer, const MessageHeader& header) noexcept LINTEL_REQUIRES(polling);
  // Moves one slice of each active transfer, so that a long transfer does not delay messages. Ends
  // those that are complete, or have only waited until the transport refers to their memory no
  // more. Returns their number.
  unsigned advance_all() noexcept LINTEL_REQUIRES(polling);
  // See MessageSink::on_remote_done().
  void end_remote_access(Link& link, uint32_t token, RemoteResult result) noexcept
      LINTEL_REQUIRES(polling);
  // Fetches what start() has put off. To be called before any other message is handled, so that
  // data arrive in the order of their messages.
  void fetch_batch() noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] bool has_batch() const noexcept LINTEL_REQUIRES(polling) {
    return batch_.count != 0;
  }
  // Sends queued data messages and the reply of a long get. True: all are sent.
  [[nodiscard]] bool send_data(Peer& peer, Transfer& transfer) noexcept LINTEL_REQUIRES(polling)
      LINTEL_REQUIRES(peer.send_lock);
  // The peer is gone: its transfers end with a failed event at this side.
  void fail_all_of(Peer& peer) noexcept LINTEL_REQUIRES(polling);
  // A logical interface goes. First its copies to devices are stopped; when no access to memory of
  // its entries is under way, its transfers are dropped without events.
  void stop_copies(const NetworkInterface& interface) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] bool access_under_way(const NetworkInterface& interface) noexcept
      LINTEL_REQUIRES(polling);
  void drop_all_of(const NetworkInterface& interface) noexcept LINTEL_REQUIRES(polling);

 private:
  // Puts of one peer that matched in one burst of messages, to be fetched from its memory together.
  struct Batch {
    static constexpr unsigned capacity = 16;
    Transfer* transfers[capacity];
    unsigned count = 0;
    uint64_t bytes = 0;
  };
  void on_staged(StagedStream& stream) noexcept override LINTEL_REQUIRES(polling);
  void advance(Transfer& transfer) noexcept LINTEL_REQUIRES(polling);
  void advance_staged(Transfer& transfer) noexcept LINTEL_REQUIRES(polling);
  void access(Transfer& transfer, const Piece* local, unsigned local_count,
              uint64_t length) noexcept LINTEL_REQUIRES(polling);
  void take_result(Transfer& transfer, RemoteResult result) noexcept LINTEL_REQUIRES(polling);
  void continue_by_messages(Transfer& transfer) noexcept LINTEL_REQUIRES(polling);
  void request_data(Transfer& transfer, uint64_t end) noexcept LINTEL_REQUIRES(polling);
  void offer_data(Transfer& transfer) noexcept LINTEL_REQUIRES(polling);
  void continue_sending(Transfer& transfer) noexcept LINTEL_REQUIRES(polling);
  void take_staged_data(Transfer& transfer, const InboundMessage& message) noexcept
      LINTEL_REQUIRES(polling);
  [[nodiscard]] bool begin_staging(Transfer& transfer, const DeviceImport& import) noexcept
      LINTEL_REQUIRES(polling);
  [[nodiscard]] bool end_staging(Transfer& transfer) noexcept LINTEL_REQUIRES(polling);
  unsigned end_released() noexcept LINTEL_REQUIRES(polling);
  void end(Transfer& transfer) noexcept LINTEL_REQUIRES(polling);
  void fail(Transfer& transfer, ptl_ni_fail_t why) noexcept LINTEL_REQUIRES(polling) {
    transfer.fail = why;
    end(transfer);
  }

  AnswerSender& answers_;
  SendQueues& queues_;
  Staging& staging_;
  RefusedRequests& refused_;
  TransferTable table_;
  Batch batch_;
};

}  // namespace lintel

// Requests at their target: translation, delivery, answering (spec 2.5, 3.11, 3.12, 4.2.2). Message
// path.
#pragma once

#include "core/objects/network_interface.h"
#include "core/operations/answer_sender.h"
#include "core/operations/transfers.h"
#include "transport/polling.h"

namespace lintel {

class Target {
 public:
  Target(SendQueues& queues, ScratchPool& scratch, Staging& staging, RefusedRequests& refused,
         PollFlag& work_due) noexcept
      : scratch_(scratch),
        refused_(refused),
        answers_(queues, refused),
        transfers_(answers_, queues, staging, refused, work_due) {}
  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept { return answers_.open() && transfers_.open(); }

  [[nodiscard]] AnswerSender& answers() noexcept { return answers_; }
  [[nodiscard]] Transfers& transfers() noexcept { return transfers_; }
  [[nodiscard]] const Transfers& transfers() const noexcept { return transfers_; }
  [[nodiscard]] ScratchPool& scratch() noexcept { return scratch_; }

  // `interface`: nullptr if the process has no such interface (any more).
  void handle_request(NetworkInterface* interface, Peer& peer,
                      const InboundMessage& message) noexcept LINTEL_REQUIRES(polling);

 private:
  ScratchPool& scratch_;
  RefusedRequests& refused_;
  AnswerSender answers_;
  Transfers transfers_;
};

}  // namespace lintel

// Requests at their target: translation, delivery, answering (spec 2.5, 3.11, 3.12, 4.2.2). Message
// path.
#pragma once

#include "core/objects/network_interface.h"
#include "core/operations/answer_sender.h"
#include "core/operations/held_messages.h"
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
        transfers_(answers_, queues, staging, refused, work_due),
        held_(answers_, work_due) {}
  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept { return answers_.open() && transfers_.open(); }

  [[nodiscard]] AnswerSender& answers() noexcept { return answers_; }
  [[nodiscard]] Transfers& transfers() noexcept { return transfers_; }
  [[nodiscard]] const Transfers& transfers() const noexcept { return transfers_; }
  [[nodiscard]] HeldMessages& held() noexcept { return held_; }
  [[nodiscard]] const HeldMessages& held() const noexcept { return held_; }
  [[nodiscard]] ScratchPool& scratch() noexcept { return scratch_; }

  // `interface`: nullptr if the process has no such interface (any more).
  void handle_request(NetworkInterface* interface, Peer& peer,
                      const InboundMessage& message) noexcept LINTEL_REQUIRES(polling);
  // Delivers held messages if there may be room; returns how many.
  unsigned deliver_held() noexcept LINTEL_REQUIRES(polling);
  // A logical interface goes.
  void drop_held(const NetworkInterface& interface) noexcept LINTEL_REQUIRES(polling);

 private:
  // False: it stays held.
  [[nodiscard]] bool deliver_held(HeldQueue& queue, const InboundMessage& message) noexcept
      LINTEL_REQUIRES(polling);

  ScratchPool& scratch_;
  RefusedRequests& refused_;
  AnswerSender answers_;
  Transfers transfers_;
  HeldMessages held_;
};

}  // namespace lintel

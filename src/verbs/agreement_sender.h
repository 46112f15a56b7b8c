// Sends the messages by which both ends agree on a queue pair: as datagrams, as soon as there is
// room. The poller.
#pragma once

#include <cstdint>

#include "verbs/agreement.h"
#include "verbs/channel.h"
#include "verbs/verbs_link.h"

namespace lintel {

class AgreementSender {
 public:
  // `eager_bytes`: payload of a message that the receive buffers can take.
  AgreementSender(Transport& datagrams, UnfinishedLinks& unfinished, uint32_t eager_bytes) noexcept
      : datagrams_(datagrams), unfinished_(unfinished), eager_bytes_(eager_bytes) {}

  // Schedules `what`, one of VerbsLink::pending_*: the next send_pending() sends it.
  void schedule(VerbsLink& link, uint8_t what) noexcept;
  void decline(VerbsLink& link, uint32_t offered_number) noexcept;
  // The peer gives up a queue pair that does not exist here, or no longer.
  void deny(VerbsLink& link, uint32_t own_number, uint32_t peer_number) noexcept;
  // Schedules the change. From now on nothing else is sent until this message was sent.
  void begin_change(VerbsLink& link) noexcept;

  // Sends scheduled messages. True: all are sent.
  bool send_pending(VerbsLink& link) noexcept;

 private:
  bool send(VerbsLink& link, uint8_t what, Agreement kind) noexcept;

  Transport& datagrams_;
  UnfinishedLinks& unfinished_;
  const uint32_t eager_bytes_;
};

}  // namespace lintel

// The messages by which both ends agree on a queue pair. They travel as datagrams of the
// reliability layer: in order, repeated until they arrive, and from a peer that has proven the job
// secret. Connection path, the poller.
#pragma once

#include <cstddef>
#include <cstdint>

#include "verbs/channel.h"
#include "verbs/queue_pair.h"
#include "verbs/verbs_link.h"

namespace lintel {

inline constexpr uint16_t agreement_version = 5;

// Value of MessageHeader::operation in a message of kind connection.
enum class Agreement : uint8_t { offer = 1, decline, change, resume, loss, rails };

struct AgreementBody {
  uint16_t version;
  uint8_t mtu;
  uint8_t reads;
  uint32_t sender_number;  // queue pair numbers of both ends, 0: not known (yet)
  uint32_t receiver_number;
  uint32_t first_packet;
  uint32_t channel_index;  // sent with each message to the sender of this body
  uint32_t eager_bytes;    // maximum payload of a message in the buffers of the sender
  uint64_t received;       // resume: messages that came over the queue pair
  uint8_t gid[16];
  uint16_t lid;
  uint16_t rail;  // VerbsLink::rail; rails: the number of further ports of the sender
  uint16_t zero[2];
};
static_assert(sizeof(AgreementBody) == 56);
static_assert(offsetof(AgreementBody, received) == 24 && offsetof(AgreementBody, lid) == 48);

// Sends them as soon as there is room.
class AgreementSender {
 public:
  // `eager_bytes`: payload of a message that the receive buffers can take.
  AgreementSender(Transport& datagrams, UnfinishedLinks& unfinished, uint32_t eager_bytes) noexcept
      : datagrams_(datagrams), unfinished_(unfinished), eager_bytes_(eager_bytes) {}

  // `ports`: the further ports of this process.
  void tell_of_rails(VerbsLink& link, uint8_t ports) noexcept;
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
  uint8_t further_ports_ = 0;
};

}  // namespace lintel

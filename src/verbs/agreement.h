// The messages by which both ends agree on a queue pair. They travel as datagrams of the
// reliability layer: in order, repeated until they arrive, and from a peer that has proven the job
// secret.
#pragma once

#include <cstddef>
#include <cstdint>

#include "verbs/queue_pair.h"

namespace lintel {

inline constexpr uint16_t agreement_version = 3;

// Value of MessageHeader::operation in a message of kind connection.
enum class Agreement : uint8_t { offer = 1, decline, change, resume, loss };

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
  uint16_t zero[3];
};
static_assert(sizeof(AgreementBody) == 56);
static_assert(offsetof(AgreementBody, received) == 24 && offsetof(AgreementBody, lid) == 48);

}  // namespace lintel

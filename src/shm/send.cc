// Sending one message. Message path: no system call, no allocation, no locked instruction, except
// for the first answer to a peer that made contact (connection path) and to wake one that sleeps.
#include "shm/shm_transport.h"
#include "util/peer_order.h"

namespace lintel {

SendStatus ShmTransport::send(Link& base, const MessageHeader& header, const Piece* pieces,
                              unsigned count) noexcept {
  ShmLink& link = static_cast<ShmLink&>(base);
  if (link.failed.load(std::memory_order_relaxed)) [[unlikely]]
    return SendStatus::peer_failed;
  if (!link.producer.attached()) [[unlikely]]
    return attach_and_send(link, header, pieces, count);
  note_sending();
  const SendStatus status = link.producer.push(header, pieces, count);
  if (status == SendStatus::sent) [[likely]] {
    link.peer_doorbell->ring_if_sleeping();
    uint64_t bytes = count == 0 ? 0 : pieces->length;
    for (unsigned i = 1; i < count; ++i) bytes += pieces[i].length;
    link.sent_messages.add(1);
    link.sent_bytes.add(bytes);
    if (link.send_blocked.load(std::memory_order_relaxed)) [[unlikely]]
      link.send_blocked.store(false, std::memory_order_relaxed);
  } else if (status == SendStatus::queue_full) {
    link.queue_full.add(1);
    link.send_blocked.store(true, std::memory_order_release);  // the producer is set up
  }
  return status;
}

}  // namespace lintel

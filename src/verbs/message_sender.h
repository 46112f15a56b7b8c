// Messages over a queue pair: sent from slots, which keep them until the peer has them. Those that
// a queue pair did not deliver are sent again as datagrams. Message path: no system call of ours (a
// driver may make its own), no allocation. The lock of the link is held, except as said.
#pragma once

#include <cstdint>
#include <string>

#include "util/counter.h"
#include "verbs/channel.h"
#include "verbs/send_slots.h"

namespace lintel {

class MessageSender {
 public:
  // Set-up path: for messages of small_bytes and large_bytes, headers included. False: `reason`
  // says why not.
  [[nodiscard]] bool open(ibv_pd* pd, uint32_t small_bytes, uint32_t large_bytes,
                          std::string& reason) {
    return slots_.open(pd, small_bytes, large_bytes, reason);
  }

  [[nodiscard]] SendStatus send(VerbsLink& link, const MessageHeader& header, const Piece* pieces,
                                unsigned count) noexcept;
  // As Transport::forgo(), where the peer exposes memory through windows.
  void forgo(VerbsLink& link, const RemoteMemory* remote, unsigned count) noexcept;
  // The last messages asked for no completion: one more asks for it, so that its completion tells
  // of all.
  void request_completion(VerbsLink& link) noexcept;

  // A message has ended; without success it may have arrived or not, and is kept to be sent again.
  void retire(VerbsLink& link, uint32_t slot, bool success) noexcept;
  // The queue pair is gone.
  void release_spares(Channel& channel) noexcept;
  // Without the lock. Sends again what the peer has not received. False: not all of it yet.
  [[nodiscard]] bool send_again(VerbsLink& link, Transport& datagrams) noexcept;
  // Without the lock. The peer is gone.
  void discard_unsent(VerbsLink& link) noexcept;

  // Messages that have reached the other end over queue pairs, and as datagrams instead.
  [[nodiscard]] uint64_t sent() const noexcept { return sent_.get(); }
  [[nodiscard]] uint64_t sent_again() const noexcept { return sent_again_.get(); }

 private:
  uint32_t acquire_slot(Channel& channel, uint64_t bytes) noexcept;
  void release_slot(Channel& channel, uint32_t slot) noexcept;
  uint32_t take_unsent(VerbsLink& link) noexcept;

  SendSlots slots_;
  Counter sent_;  // the poller
  SharedCounter sent_again_;
};

}  // namespace lintel

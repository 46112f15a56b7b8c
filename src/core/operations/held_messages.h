// Requests that this process holds as their target: their portal table entry has
// PTL_LINTEL_PT_HOLD, and no room for them (or for one of the same initiator before them). The
// initiator is told, and stops: see StoppedEntries. Message path.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/objects/network_interface.h"
#include "core/operations/answer_sender.h"
#include "core/operations/operation.h"
#include "transport/polling.h"
#include "util/arena.h"
#include "util/lock.h"

namespace lintel {

struct HeldMessage {
  std::atomic<uint32_t> next_free{0};
  HeldMessage* next = nullptr;
  MessageHeader header{};
  uint32_t payload_length = 0;
  uint32_t long_payload = 0;  // index of the LongPayload, if the payload does not fit here
  std::byte payload[short_answer_bytes];
};

// The messages of one initiator to one portal table entry, in their order.
struct HeldQueue {
  std::atomic<uint32_t> next_free{0};
  Peer* peer = nullptr;
  NetworkInterface* interface = nullptr;
  PortalEntry* portal = nullptr;
  HeldMessage* head = nullptr;
  HeldMessage** tail = nullptr;
  uint32_t untold = 0;  // messages since the initiator was told
  HeldQueue* next_of_peer = nullptr;
  HeldQueue* next = nullptr;
};

class HeldMessages {
 public:
  HeldMessages(AnswerSender& answers, PollFlag& work_due) noexcept
      : answers_(answers), work_due_(work_due) {}
  // Set-up path, any thread; before the first portal table entry with the option, so that others
  // need no address space. May be called again. False: no address space.
  [[nodiscard]] bool open() noexcept;

  // There may be room. Any thread; the caller wakes the poller.
  void note_room() noexcept {
    room_.store(true, std::memory_order_release);
    work_due_.set();
  }
  [[nodiscard]] bool is_due() const noexcept { return room_.load(std::memory_order_acquire); }

  // nullptr: no message of the peer to that entry is held.
  [[nodiscard]] static HeldQueue* find(const Peer& peer, const PortalEntry& portal) noexcept
      LINTEL_REQUIRES(polling);
  // Copies the message. nullptr: no memory, or the peer has too much of it.
  [[nodiscard]] HeldQueue* add(Peer& peer, NetworkInterface& interface, PortalEntry& portal,
                               const InboundMessage& message) noexcept LINTEL_REQUIRES(polling)
      LINTEL_REQUIRES(portal.lock);
  // Tells the initiator to stop, if it may not know. No lock is held.
  void tell(HeldQueue& queue) noexcept LINTEL_REQUIRES(polling);

  // Calls deliver(queue, message) for the first message of each queue, and for those behind it as
  // long as it returns true: the message has ended. Returns how many did.
  template <typename Deliver>
  unsigned deliver_due(const Deliver& deliver) noexcept LINTEL_REQUIRES(polling);
  // Ends all queues of a logical interface that goes, after refuse(peer, header) for each message.
  template <typename Refuse>
  void drop_all_of(const NetworkInterface& interface, const Refuse& refuse) noexcept
      LINTEL_REQUIRES(polling);
  // The peer is gone. Messages that came with all that they need stay, and are not answered.
  void forget_initiator(Peer& peer) noexcept LINTEL_REQUIRES(polling);

  SharedCounter held;  // messages, ever

 private:
  static constexpr uint32_t most_messages = 1u << 20;
  static constexpr uint32_t most_long_messages = 1u << 17;
  static constexpr uint32_t most_of_peer = 1u << 15;
  static constexpr uint32_t most_queues = 1u << 18;
  // Messages after which an initiator that goes on is told again.
  static constexpr uint32_t messages_per_reminder = 256;
  static constexpr unsigned most_at_once = 256;

  [[nodiscard]] HeldMessage* copy(Peer& peer, const InboundMessage& message) noexcept
      LINTEL_REQUIRES(polling);
  [[nodiscard]] HeldQueue* begin(Peer& peer, NetworkInterface& interface,
                                 PortalEntry& portal) noexcept LINTEL_REQUIRES(polling)
      LINTEL_REQUIRES(portal.lock);
  void send_state(const HeldQueue& queue, uint8_t modes) noexcept LINTEL_REQUIRES(polling);
  void release(Peer& peer, HeldMessage& message) noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] InboundMessage describe(const HeldMessage& message) const noexcept;
  void remove_first(HeldQueue& queue) noexcept LINTEL_REQUIRES(polling);
  // Takes `*link`, which is empty, off the list and lets its initiator go on.
  void end(HeldQueue** link) noexcept LINTEL_REQUIRES(polling);

  AnswerSender& answers_;
  PollFlag& work_due_;
  Mutex open_mutex_;
  std::atomic<bool> room_{false};
  HeldQueue* queues_ LINTEL_GUARDED_BY(polling) = nullptr;  // in the order of their first messages
  Arena<HeldMessage> messages_;
  Arena<LongPayload> long_payloads_;
  Arena<HeldQueue> queue_pool_;
  uint32_t in_use_ LINTEL_GUARDED_BY(polling) = 0;
};

template <typename Deliver>
unsigned HeldMessages::deliver_due(const Deliver& deliver) noexcept {
  if (!is_due() || !room_.exchange(false, std::memory_order_acquire)) return 0;
  unsigned done = 0;
  for (HeldQueue** link = &queues_; *link != nullptr;) {
    HeldQueue& queue = **link;
    while (queue.head != nullptr && done < most_at_once && deliver(queue, describe(*queue.head))) {
      remove_first(queue);
      ++done;
    }
    answers_.flush_acknowledgements(*queue.peer);
    if (queue.head == nullptr)
      end(link);
    else
      link = &queue.next;
  }
  if (done == most_at_once) note_room();
  return done;
}

template <typename Refuse>
void HeldMessages::drop_all_of(const NetworkInterface& interface, const Refuse& refuse) noexcept {
  for (HeldQueue** link = &queues_; *link != nullptr;) {
    HeldQueue& queue = **link;
    if (queue.interface != &interface) {
      link = &queue.next;
      continue;
    }
    for (; queue.head != nullptr; remove_first(queue)) refuse(*queue.peer, queue.head->header);
    end(link);
  }
}

}  // namespace lintel

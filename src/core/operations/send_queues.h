// Messages for which a transport had no room wait in a queue of their peer, in the order of the
// calls. These are the queues, and the list of peers that have one. Message path.
//
// Requests may be held until the peer has answered others. Answers and data pass them: two
// processes that hold requests wait for each other's answers.
#pragma once

#include <atomic>

#include "core/operations/operation.h"
#include "core/operations/peer.h"
#include "core/progress/statistics.h"
#include "util/cache_line.h"
#include "util/spin_lock.h"

namespace lintel {

class SendQueues {
 public:
  // `work_due` is set while a peer is listed.
  explicit SendQueues(PollFlag& work_due) noexcept : work_due_(work_due) {}

  // Set-up path. False: no address space.
  [[nodiscard]] bool open() noexcept { return stopped_entries_.open(); }
  void enqueue(Peer& peer, QueuedSend& item) noexcept LINTEL_REQUIRES(peer.send_lock);
  // The first item, held ones before the others; nullptr: there is none.
  [[nodiscard]] static QueuedSend* first(const Peer& peer) noexcept
      LINTEL_REQUIRES(peer.send_lock) {
    return peer.queue.held.head != nullptr ? peer.queue.held.head : peer.queue.head;
  }
  // Holds all requests that are queued, and those to come as long as any is held.
  void hold_requests(Peer& peer) noexcept LINTEL_REQUIRES(peer.send_lock);
  // The first item that is not held; nullptr: there is none. Requests are held.
  [[nodiscard]] static QueuedSend* first_not_held(const Peer& peer) noexcept
      LINTEL_REQUIRES(peer.send_lock) {
    return peer.queue.held.mark.next_queued;
  }
  // Takes an item off that one of these functions returned.
  void remove(Peer& peer, QueuedSend& item) noexcept LINTEL_REQUIRES(peer.send_lock);
  // --- entries of the peer that hold messages of this process
  // A message of kind hold has come.
  void set_stopped(Peer& peer, const MessageHeader& header) noexcept LINTEL_REQUIRES(polling);
  // Whether a request has to wait for such an entry.
  [[nodiscard]] static bool is_stopped(const Peer& peer, const MessageHeader& header) noexcept
      LINTEL_REQUIRES(peer.send_lock) {
    return peer.queue.stopped.first != nullptr && stopping(peer, header) != nullptr;
  }
  // The same for one that first() returned. True: it is not in the queue any more.
  [[nodiscard]] bool stops(Peer& peer, QueuedSend& item) noexcept LINTEL_REQUIRES(peer.send_lock);
  // Whether as many requests wait for its entry as may.
  [[nodiscard]] static bool has_too_many(Peer& peer, const MessageHeader& header) noexcept;

  // Takes all items off, held ones too; returns the first of a chain through `next_queued`.
  [[nodiscard]] QueuedSend* take_all(Peer& peer) noexcept LINTEL_REQUIRES(peer.send_lock);
  // Drops what a logical interface that goes has queued, without events.
  void drop_all_of(Peer& peer, const NetworkInterface& interface) noexcept
      LINTEL_REQUIRES(peer.send_lock);

  // Any peer is listed: the poller has to flush queues.
  [[nodiscard]] bool any() const noexcept {
    return listed_.load(std::memory_order_relaxed) != nullptr;
  }
  // The listed peers, through `next_with_queue`. Each is taken off the list by begin_flush().
  [[nodiscard]] Peer* take_listed() noexcept;
  void begin_flush(Peer& peer) noexcept LINTEL_REQUIRES(peer.send_lock) {
    peer.queue.listed = false;
  }
  void end_flush(Peer& peer) noexcept LINTEL_REQUIRES(peer.send_lock) {
    if (peer.queue.head != nullptr) list(peer);
  }

  SharedCounter queued;   // items, ever
  SharedCounter retries;  // an item still found no room
  SharedCounter stopped;  // requests that waited for an entry that holds messages

 private:
  static void drop_from(QueuedSend**& tail, QueuedSend** link, Peer& peer,
                        const NetworkInterface& interface) noexcept LINTEL_REQUIRES(peer.send_lock);
  [[nodiscard]] static StoppedEntry* stopping(const Peer& peer,
                                              const MessageHeader& header) noexcept
      LINTEL_REQUIRES(peer.send_lock) {
    return StoppedEntries::find(peer.queue.stopped, StoppedEntries::name_of(header));
  }
  void go_on(Peer& peer, StoppedEntry& entry) noexcept LINTEL_REQUIRES(peer.send_lock);
  static void forget_mark(Peer& peer) noexcept LINTEL_REQUIRES(peer.send_lock);
  void list(Peer& peer) noexcept LINTEL_REQUIRES(peer.send_lock);

  PollFlag& work_due_;
  StoppedEntries stopped_entries_;
  alignas(cache_line_bytes) SpinLock lock_;  // guards the list; taken under send locks
  std::atomic<Peer*> listed_{nullptr};       // written under the lock
};

}  // namespace lintel

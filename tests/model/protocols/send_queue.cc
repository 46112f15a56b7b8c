// SendQueues: a message that a thread queues for a peer is flushed by the thread that polls, which
// takes the report of work, then the list of peers, then the queue of each.
#include "core/operations/send_queues.h"
#include "core/progress/poll_flag.h"
#include "program.h"
#include "util/lock.h"

namespace lintel::model {
namespace {

template <unsigned senders>
struct Queues {
  PollFlag work_due;
  SendQueues queues{work_due};
  Peer peers[2];
  QueuedSend items[2]{QueuedSend{QueuedSend::Kind::answer}, QueuedSend{QueuedSend::Kind::answer}};
  unsigned sent[2]{};

  void enqueue(unsigned peer, unsigned item) {
    const LockGuard guard(peers[peer].send_lock);
    queues.enqueue(peers[peer], items[item]);
  }
  void first() { enqueue(0, 0); }
  void second_to_same() { enqueue(0, 1); }
  void second_to_other() { enqueue(1, 1); }

  // As Poller::poll_once() and flush_queues().
  void poll() {
    for (unsigned left = senders; left != 0;) {
      if (!work_due.is_set()) continue;
      static_cast<void>(work_due.take());
      if (!queues.any()) continue;
      for (Peer* peer = queues.take_listed(); peer != nullptr;) {
        Peer* const next = peer->queue_counts.next_with_queue;
        const LockGuard guard(peer->send_lock);
        queues.begin_flush(*peer);
        while (QueuedSend* const item = queues.first(*peer)) {
          queues.remove(*peer, *item);
          ++sent[item - items];
          --left;
        }
        queues.end_flush(*peer);
        peer = next;
      }
    }
  }
  void all_sent() {
    for (unsigned i = 0; i < senders; ++i) require(sent[i] == 1, "each item is sent once");
  }
};

}  // namespace

Protocol send_queue() {
  using One = Queues<1>;
  using Two = Queues<2>;
  return {
      "SendQueues",
      {"core/operations/send_queues"},
      {share<One>("one item", {&One::first, &One::poll}, &One::all_sent),
       share<Two>("two items of a peer", {&Two::first, &Two::second_to_same, &Two::poll},
                  &Two::all_sent),
       share<Two>("two peers", {&Two::first, &Two::second_to_other, &Two::poll}, &Two::all_sent)}};
}

}  // namespace lintel::model

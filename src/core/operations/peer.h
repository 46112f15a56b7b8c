// State that this process keeps about one it exchanges messages with. A peer exists from the first
// message on and never moves. Message path.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "core/operations/awaited_puts.h"
#include "core/operations/operation.h"
#include "core/operations/stopped_entries.h"
#include "core/progress/poll_flag.h"
#include "core/progress/statistics.h"
#include "transport/transport.h"
#include "util/arena.h"
#include "util/spin_lock.h"
#include "util/thread_annotations.h"

namespace lintel {

inline constexpr unsigned interface_slots = flag_interface_mask + 1;
inline constexpr uint32_t ack_batch_capacity = 20;  // cookies that travel with the header itself

struct HeldQueue;
struct Peer;

// The way of messages to a peer. Changed under the send lock.
struct PeerRoute {
  Link* link = nullptr;
  Transport* transport = nullptr;
  // Flag that is set after a send to the own process, so that the poller polls for it. nullptr for
  // other processes.
  PollFlag* in_process_sends = nullptr;
  // Length of the longest put whose payload travels with its header.
  std::atomic<uint32_t> eager_put_bytes{0};
  bool knows_memory = false;  // the process was named memory of a device
};

// Requests that wait until the peer has answered others. While there are any, the mark is the first
// item of the queue.
struct HeldRequests {
  QueuedSend* head = nullptr;
  QueuedSend** tail = &head;
  QueuedSend mark{QueuedSend::Kind::mark};
};

// Messages that could not be sent, in order. See SendQueues.
struct QueuedSends {
  QueuedSend* head = nullptr;
  QueuedSend** tail = &head;
  HeldRequests held;
  StoppedChain stopped;  // entries of the peer that hold messages of this process
  uint32_t answers = 0;
  uint32_t long_answers = 0;  // those with a LongPayload
  bool listed = false;
};

// Part of the queue that threads without the send lock read.
struct QueueCounts {
  std::atomic<uint32_t> length{0};   // written under send_lock
  std::atomic<uint32_t> removed{0};  // items ever, modulo 2^32; written under send_lock
  // Value of `removed` when callers that helped to send saw no item leave; any thread.
  std::atomic<uint32_t> helped_without_effect_at{UINT32_MAX};
  Peer* next_with_queue = nullptr;  // under the lock of SendQueues

  // Called under send_lock.
  void add() noexcept {
    length.store(length.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void remove() noexcept {
    length.store(length.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    removed.store(removed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

struct PeerFailure {
  const char* because = "";                 // constant text
  const std::string* not_others = nullptr;  // why no transport with precedence is used
  uint64_t gone_said_ns = 0;                // time of the last log line "is gone"
};

// Acknowledgements of the burst that is handled.
struct AckBatch {
  uint32_t cookies[ack_batch_capacity];
  uint32_t count = 0;
};

// Ended operations of the burst that is handled, through next_free.
struct ReturnedChain {
  uint32_t head = Arena<Operation>::no_index;
  uint32_t tail = Arena<Operation>::no_index;
};

// Gets whose data were sent from where they lie, in the order sent, through next_active.
struct UnreleasedGets {
  Transfer* head = nullptr;
  Transfer* tail = nullptr;
  Peer* next_peer = nullptr;
  bool listed = false;
};

// Its messages that this process holds, see HeldMessages.
struct HeldOfPeer {
  HeldQueue* first = nullptr;  // through next_of_peer
  uint32_t messages = 0;
};

struct LongMessages {
  uint32_t transfers = 0;   // under way from or to the peer, at the target
  uint8_t device_ways = 0;  // bit i: DeviceWay i was logged
};

struct OperationCounts {
  std::atomic<uint32_t> started{0};  // written under send_lock
  std::atomic<uint32_t> ended{0};    // written under the poll token
};

struct alignas(64) Peer {
  std::atomic<uint32_t> next_free{0};
  ProcessId id{};

  SpinLock send_lock;
  std::atomic<bool> failed{true};  // failed or not connected yet; written under send_lock
  // Whether it has failed, or has stopped any entry: short cuts of sends end. Written under
  // send_lock.
  std::atomic<bool> diverts{true};
  std::atomic<bool> awaits_process{false};  // its link has found no process; under send_lock
  PeerRoute route;
  // Chain through next_free.
  uint32_t free_operations LINTEL_GUARDED_BY(send_lock) = Arena<Operation>::no_index;
  AwaitedPuts awaited_puts;
  TrafficCounters sent;
  QueuedSends queue LINTEL_GUARDED_BY(send_lock);
  QueueCounts queue_counts;
  PeerFailure failure;

  alignas(64) AckBatch acks LINTEL_GUARDED_BY(polling);
  Counter acknowledged_in_place;  // puts that the transport acknowledged, see MessageSink::on_put()
  LongMessages long_messages LINTEL_GUARDED_BY(polling);
  HeldOfPeer held LINTEL_GUARDED_BY(polling);
  ReturnedChain returned LINTEL_GUARDED_BY(polling);
  UnreleasedGets unreleased LINTEL_GUARDED_BY(polling);

  // --- shared
  std::atomic<uint32_t> returned_operations{Arena<Operation>::no_index};
  OperationCounts operations;
  // Headers of its messages, by the slot of the interface; see UnexpectedPool.
  std::atomic<uint32_t> unexpected[interface_slots]{};

  // Any thread.
  [[nodiscard]] bool sends_by(const Link& of) noexcept {
    return std::atomic_ref<Link*>(route.link).load(std::memory_order_relaxed) == &of;
  }
  void note_in_process_send() const noexcept {
    if (route.in_process_sends != nullptr) route.in_process_sends->set();
  }
  void count_as_started() noexcept LINTEL_REQUIRES(send_lock) {
    add_unshared(operations.started, 1u);
  }
  void count_as_ended() noexcept LINTEL_REQUIRES(polling) { add_unshared(operations.ended, 1u); }
  // Operations that were sent and have not ended.
  [[nodiscard]] uint32_t in_flight() const noexcept LINTEL_REQUIRES(send_lock) {
    return operations.started.load(std::memory_order_relaxed) -
           operations.ended.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool has_outstanding() const noexcept {
    return operations.started.load(std::memory_order_relaxed) !=
           operations.ended.load(std::memory_order_relaxed);
  }
  void set_failed(bool now) noexcept LINTEL_REQUIRES(send_lock) {
    failed.store(now, std::memory_order_release);
    note_stopped();
  }
  void note_stopped() noexcept LINTEL_REQUIRES(send_lock) {
    diverts.store(failed.load(std::memory_order_relaxed) || queue.stopped.first != nullptr,
                  std::memory_order_relaxed);
  }
  // A thread waits for this peer: check that it lives.
  [[nodiscard]] bool is_awaited() const noexcept LINTEL_REQUIRES(polling) {
    return !failed.load(std::memory_order_acquire) &&
           (has_outstanding() || queue_counts.length.load(std::memory_order_relaxed) != 0 ||
            long_messages.transfers != 0);
  }
};

// Why the transport of the peer does not access memory of devices, or did not.
[[nodiscard]] inline const char* why_staged(const Peer& peer) noexcept {
  return peer.route.transport->capabilities().accesses_accelerators
             ? "the network device did not register it"
             : "this transport does not access it";
}

// ---- How much of the pools of a process one of its peers may take.
//
// A correct peer never comes to its limit. Its operations in flight need half of it. The other half
// is for operations of a former interface of the peer (PtlNIFini). Their answers may still wait
// here.

// Limits of an initiator: further requests of the kind are held while this many operations are in
// flight.
inline constexpr uint32_t most_long_replies_in_flight = 1u << 12;
inline constexpr uint32_t most_transfers_in_flight = 1u << 14;
// Limits of a target: LongPayloads and Transfers of one peer.
inline constexpr uint32_t most_long_answers_of_peer = 2 * most_long_replies_in_flight;
inline constexpr uint32_t most_transfers_of_peer = 2 * most_transfers_in_flight;

// Whether a peer that has `taken` objects of a pool may take another one. A peer may have at most
// as many as are left for the others, so that several peers at their limit leave some.
[[nodiscard]] constexpr bool may_take(uint32_t taken, uint32_t most, uint32_t in_use,
                                      uint32_t capacity) noexcept {
  return taken < std::min(most, capacity - in_use);
}

// The initiator's side. The header is complete.
[[nodiscard]] inline bool has_to_wait(const Peer& peer, const MessageHeader& header) noexcept
    LINTEL_REQUIRES(peer.send_lock) {
  if ((header.flags & flag_remote_memory) != 0) return peer.in_flight() >= most_transfers_in_flight;
  const bool is_replied_to = header.kind == MessageKind::get ||
                             header.kind == MessageKind::fetch_atomic ||
                             header.kind == MessageKind::swap;
  return is_replied_to && header.length() > short_answer_bytes &&
         peer.in_flight() >= most_long_replies_in_flight;
}

}  // namespace lintel

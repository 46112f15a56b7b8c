// A physical interface: one address, its transports and peers, and up to four logical interfaces
// over it (spec 3.6). Owns the poll token: whoever holds it moves messages.
// Message path, except where a function says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/events/wait_gate.h"
#include "core/operations/answer_sender.h"
#include "core/operations/operation_table.h"
#include "core/operations/peer_directory.h"
#include "core/operations/send_queues.h"
#include "core/operations/transfer_table.h"
#include "core/progress/passing_policy.h"
#include "core/progress/poll_token.h"
#include "core/progress/progress_thread.h"
#include "core/progress/statistics.h"
#include "core/progress/wait_policy.h"
#include "transport/opened_transports.h"
#include "transport/transport.h"
#include "util/quick_clock.h"

namespace lintel {

class NetworkInterface;

inline constexpr unsigned most_transports = 8;
inline constexpr unsigned logical_interfaces = 4;
// Set in NetworkInterface slots: which of the four an interface is, the same in every process.
inline constexpr unsigned slot_matching = 1;
inline constexpr unsigned slot_logical = 2;

class PhysicalInterface final : public MessageSink {
 public:
  // Set-up path. `pid` may be PTL_PID_ANY. Returns a Portals return code; on PTL_OK the interface
  // is reachable by others.
  [[nodiscard]] int open(uint32_t number, uint32_t pid, OpenTransports open_transports);
  // Set-up path; no logical interface is left. Sends what is queued, for a bounded time.
  void close() noexcept;
  ~PhysicalInterface();

  [[nodiscard]] ProcessId id() const noexcept { return id_; }
  [[nodiscard]] uint32_t uid() const noexcept { return uid_; }
  [[nodiscard]] WaitGate& gate() noexcept { return gate_; }

  // Set-up path: makes the logical interface visible to arriving messages, or hides it; returns when
  // no message is being delivered to the one that was there.
  void set_logical(unsigned slot, NetworkInterface* interface) noexcept;
  [[nodiscard]] NetworkInterface* logical(unsigned slot) const noexcept {
    return logical_[slot].load(std::memory_order_acquire);
  }
  // Set-up path: runs `action` while nobody polls.
  template <typename Action>
  void exclusively(Action&& action) noexcept {
    const PollToken::Exclusive hold(token_, gate_);
    action();
  }

  [[nodiscard]] PeerDirectory& peers() noexcept { return peers_; }
  [[nodiscard]] SendQueues& queues() noexcept { return queues_; }
  [[nodiscard]] const SendQueues& queues() const noexcept { return queues_; }
  [[nodiscard]] OperationTable& operations() noexcept { return operations_; }
  [[nodiscard]] TransferTable& transfers() noexcept { return transfers_; }
  [[nodiscard]] AnswerSender& answers() noexcept { return answers_; }

  // --- progress (progress.cc)
  [[nodiscard]] PollToken& token() noexcept { return token_; }
  // Token held: one round over the transports and what is queued. Returns messages handled.
  unsigned poll_once() noexcept;
  // Any thread: polls a little if nobody else does; otherwise makes sure that somebody will.
  void kick() noexcept;
  // Any thread, after a send to this process: delivers what is under way there, if nobody else polls.
  void kick_in_process() noexcept;
  // Delivers a put of this process to itself at once, between begin (true) and end. False: another
  // thread polls, or what was sent before has not been delivered yet.
  [[nodiscard]] bool begin_delivery_to_self(const Peer& peer) noexcept;
  // False: it is no plain put, and nothing was done.
  [[nodiscard]] bool deliver_to_self(Peer& peer, const InboundMessage& message) noexcept;
  void end_delivery_to_self() noexcept;
  // A few rounds of polling if nobody else polls, for calls that look and do not wait; PassingPolicy says how many.
  // True: messages came, so it is worth looking again.
  bool poll_in_passing() noexcept {
    if (!progress_by_callers_ || passing_.spares_poll()) return false;
    if (!token_.try_acquire()) [[unlikely]] {
      token_.want_in_passing();
      return false;
    }
    token_.note_application_poll();
    bool found = false;
    for (unsigned rounds = passing_.rounds(); rounds != 0 && !found; --rounds)
      found = poll_once() != 0;
    const uint32_t idle_looks = passing_.note_result(found);
    token_.release();
    if (PassingPolicy::is_rest_due(idle_looks)) [[unlikely]]
      rest_between_looks(idle_looks);
    return found;
  }
  // The same for a queue, with what belongs to that: `round_seen`. Who looks at several queues in turn needs one poll
  // for a turn, not one for each; and who was told of messages acts before there are more. So a look polls only if no
  // thread has polled since the last look at that queue, and a poll that brought something counts as another
  // thread's. Of two idle looks in a row one polls.
  bool poll_in_passing(std::atomic<uint64_t>& round_seen) noexcept {
    const uint64_t round = token_.rounds();
    if (round != round_seen.load(std::memory_order_relaxed) && passing_.shares_rounds()) {
      round_seen.store(round, std::memory_order_relaxed);
      return false;
    }
    if (poll_in_passing()) return true;
    round_seen.store(token_.rounds(), std::memory_order_relaxed);
    return false;
  }
  // Waits until ready() is true; ready() is called often and may consume. False: the deadline
  // (now_ns() based, UINT64_MAX for none) passed, or PtlAbort was called. Defined in wait.h.
  template <typename Ready>
  bool wait_until(Ready&& ready, uint64_t deadline_ns) noexcept;
  void wake_all_waiters() noexcept { gate_.wake_all(); }

  // --- MessageSink
  void* on_new_link(Link& link) noexcept override;
  void on_messages(Link& link, const InboundMessage* messages, unsigned count) noexcept override;
  void on_peer_failed(Link& link) noexcept override;
  void on_remote_done(Link& link, uint32_t token, RemoteResult result) noexcept override;
  bool may_access(Link& link, const RemoteMemory& memory, bool write) noexcept override;

  // A logical interface goes: ends its operations without events and drops its transfers. Token held.
  void forget_logical(NetworkInterface& interface) noexcept;

  // --- what one can see
  TrafficCounters received;
  PollCounters poll_counters;
  SharedCounter peers_failed;
  SharedCounter messages_refused;
  [[nodiscard]] uint64_t sent_messages(MessageKind kind) const noexcept;
  [[nodiscard]] uint64_t sent_bytes(MessageKind kind) const noexcept;
  [[nodiscard]] NetworkCounters network_counters() const noexcept;  // of all transports
  void print_statistics() const noexcept;

 private:
  friend class ProgressThread;
  friend class Waiter;

  void set_up_waiting();
  void check_peers() noexcept;
  bool all_delivered() noexcept;
  unsigned poll_in_process_sends() noexcept;
  bool arm_transports() noexcept;
  void disarm_transports() noexcept;
  // How long a poller may sleep before it must look after peers with operations outstanding, or
  // after the timers of a transport.
  [[nodiscard]] int64_t sleep_limit_ns() const noexcept;
  // Waits for remote accesses of the interface's transfers, which touch memory of the application. Set-up path.
  void finish_remote_accesses(const NetworkInterface& interface) noexcept;
  void rest_between_looks(uint32_t idle_looks) noexcept;

  uint32_t number_ = 0;
  ProcessId id_{};
  uint32_t uid_ = 0;
  std::vector<std::unique_ptr<Transport>> transports_;
  // The same, as the poller goes through them. The one whose peers are all in this process is polled
  // only after a send to one.
  struct PolledTransport {
    Transport* transport;
    bool by_system_call;
  };
  PolledTransport polled_[most_transports] = {};
  Transport* in_process_transport_ = nullptr;
  unsigned polled_count_ = 0;
  PollFlag in_process_sends_;
  std::atomic<NetworkInterface*> logical_[logical_interfaces] = {};
  Doorbell private_doorbell_;
  Doorbell* doorbell_ = &private_doorbell_;
  WaitGate gate_;

  alignas(64) PollToken token_;
  uint64_t next_peer_check_ns_ = 0;  // token held
  static constexpr uint32_t polls_between_clock_looks = 4096;
  uint32_t polls_since_clock_ = 0;  // token held
  TransferTable transfers_;
  Transport* polled_transport_ = nullptr;  // token held: whose poll() is running

  PeerDirectory peers_;
  SendQueues queues_;
  OperationTable operations_;
  AnswerSender answers_{queues_, messages_refused};

  ProgressThread progress_thread_;
  bool progress_by_callers_ = true;  // waiting threads poll
  WaitPolicy wait_policy_{processor_load()};
  PassingPolicy passing_{processor_load(), quick_clock()};
  uint64_t peer_check_interval_ns_ = 0;
};

}  // namespace lintel

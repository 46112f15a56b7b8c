// Polls the transports of a physical interface, one thread at a time: the holder of the poll token.
// Message path.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/events/wait_gate.h"
#include "core/progress/poll_flag.h"
#include "core/progress/poll_token.h"
#include "core/progress/polled_transports.h"
#include "core/progress/statistics.h"
#include "util/cache_line.h"

namespace lintel {

// Work of the poller besides polling.
class PolledWork {
 public:
  // Does what it can, in the next round after work_due() was set; sets it again if something is
  // left. Returns how much was done.
  virtual unsigned advance() noexcept LINTEL_REQUIRES(polling) = 0;
  // advance() would achieve something now: the poller must not sleep.
  [[nodiscard]] virtual bool is_ready() const noexcept LINTEL_REQUIRES(polling) = 0;
  // Sends wait until a transport has room.
  [[nodiscard]] virtual bool sends_wait() const noexcept LINTEL_REQUIRES(polling) = 0;
  // Peers in other processes, that an operation may wait for at any time.
  [[nodiscard]] virtual bool has_peers() const noexcept LINTEL_REQUIRES(polling) = 0;
  // Peers with operations that fail if they die.
  [[nodiscard]] virtual bool awaits_peers() const noexcept LINTEL_REQUIRES(polling) = 0;
  virtual void check_peers() noexcept LINTEL_REQUIRES(polling) = 0;
  // Before the poller sleeps: has the progress threads of these peers check whether one polls.
  virtual void wake_awaited_peers() noexcept LINTEL_REQUIRES(polling) = 0;

 protected:
  ~PolledWork() = default;
};

class Poller {
 public:
  Poller(MessageSink& sink, PolledWork& work) noexcept : sink_(sink), work_(work) {}
  // Set-up path, after the transports were added. `by_callers`: application threads may poll.
  void open(Doorbell& doorbell, bool by_callers, uint64_t peer_check_interval_ns) noexcept;

  [[nodiscard]] PollToken& token() noexcept { return token_; }
  [[nodiscard]] WaitGate& gate() noexcept { return gate_; }
  [[nodiscard]] PolledTransports& transports() noexcept { return transports_; }
  [[nodiscard]] PollFlag& work_due() noexcept { return work_due_; }
  [[nodiscard]] bool polls_by_callers() const noexcept { return by_callers_; }
  // Set-up path: runs `action` while nobody polls.
  template <typename Action>
  void exclusively(Action&& action) noexcept {
    const PollToken::Exclusive hold(token_, gate_);
    action();
  }

  // Runs one round over the transports and the work. Returns how much was done.
  unsigned poll_once() noexcept LINTEL_REQUIRES(polling);
  // The same as straight code.
  [[gnu::always_inline]] unsigned run_round() noexcept LINTEL_REQUIRES(polling) {
    token_.begin_round();
    unsigned handled = transports_.poll(sink_);
    if (work_due_.is_set()) [[unlikely]]
      handled += do_work();
    token_.end_round();
    if (handled == 0) idle_polls_.increment();
    return handled;
  }
  // Any thread, before it sets up a wait: polls a little if no thread does, until wait.is_over(),
  // which is called after rounds with work and at the end. wait.begin() and wait.end() are called
  // around that, by the thread that polls; no poll if begin() returns false. end() returns true if
  // the wait is over though is_over() was not asked: a round that counts as no work, as the end of
  // a peer, may end it. False: the wait is not over.
  template <typename Wait>
  [[nodiscard, gnu::always_inline]] bool poll_briefly(const Wait& wait) noexcept {
    if (!by_callers_ || !token_.try_acquire()) return false;
    bool is_over = false;
    if (wait.begin()) [[likely]] {
      is_over = (run_round() != 0 && wait.is_over()) || poll_more(wait);
      is_over |= wait.end();
    }
    token_.release();
    // Another waiting thread may sleep because this one has polled.
    gate_.notify();
    return is_over;
  }
  // Any thread: polls a little if no thread does; otherwise makes sure that one will.
  void kick() noexcept;
  // Lets the caller deliver a message to its own process at once, until end_delivery_to_self().
  // False: another thread polls, or what was sent before has not been delivered yet.
  [[nodiscard]] bool begin_delivery_to_self() noexcept LINTEL_TRY_ACQUIRE(true, polling) {
    if (!by_callers_ || !token_.try_acquire()) return false;
    if (transports_.in_process_sends().is_set()) [[unlikely]] {
      token_.release();
      return false;
    }
    token_.begin_round();
    return true;
  }
  void end_delivery_to_self() noexcept LINTEL_RELEASE(polling) {
    deliveries_.increment();
    token_.end_round();
    // A round follows if the delivery has caused work: triggered operations, answers that are no
    // acknowledgement. A process that sends to itself all the time must still poll for others.
    const bool polls_others = token_.rounds() / 2 % deliveries_between_polls == 0;
    const bool more = transports_.in_process_sends().is_set() || work_due_.is_set();
    token_.release();
    if (more || polls_others) [[unlikely]]
      kick();
  }

  // The order of calls: announce_sleep(); then, if prepare_sleep() finds nothing to do, sleep(),
  // which does not need the token. The next thread that polls calls wake().
  [[nodiscard]] uint32_t announce_sleep() noexcept LINTEL_REQUIRES(polling) {
    return doorbell_->announce_sleep();
  }
  [[nodiscard]] bool prepare_sleep() noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] int64_t sleep_limit_ns() const noexcept LINTEL_REQUIRES(polling);  // negative: none
  void sleep(uint32_t announced, int64_t timeout_ns) noexcept;
  void wake() noexcept LINTEL_REQUIRES(polling) { transports_.disarm(); }
  [[nodiscard]] bool is_ready() const noexcept LINTEL_REQUIRES(polling) {
    return work_due_.is_set() && work_.is_ready();
  }
  // Any thread: has the next round check peers if that is due. A thread that polls, or watches
  // whether others do, calls this every few milliseconds or after each pause: the next check is due
  // at a time, and not after a number of polls.
  void check_peers_if_due(uint64_t now_ns) noexcept {
    if (now_ns < next_peer_check_ns_.load(std::memory_order_relaxed)) return;
    peer_check_due_.set();
    work_due_.set();
  }
  [[nodiscard]] Doorbell& doorbell() noexcept { return *doorbell_; }

  // Rounds of polling, and those that found something.
  [[nodiscard]] uint64_t polls() const noexcept { return token_.rounds() / 2 - deliveries_.get(); }
  [[nodiscard]] uint64_t polls_with_work() const noexcept {
    const uint64_t idle = idle_polls_.get();
    return polls() - idle;
  }
  PollCounters counters;

 private:
  static constexpr uint64_t deliveries_between_polls = 16;
  static constexpr unsigned brief_rounds = 8;
  // The rounds of poll_briefly() after the first.
  template <typename Wait>
  [[gnu::noinline]] bool poll_more(Wait wait) noexcept LINTEL_REQUIRES(polling) {
    for (unsigned left = brief_rounds - 1; left != 0; --left)
      if ((poll_once() != 0 || left == 1) && wait.is_over()) return true;
    return false;
  }
  [[nodiscard]] unsigned do_work() noexcept LINTEL_REQUIRES(polling);
  void check_peers() noexcept LINTEL_REQUIRES(polling);

  MessageSink& sink_;
  PolledWork& work_;
  Doorbell* doorbell_ = nullptr;
  bool by_callers_ = true;
  uint64_t peer_check_interval_ns_ = 0;
  WaitGate gate_;
  alignas(cache_line_bytes) PollToken token_;
  Counter idle_polls_;
  Counter deliveries_;  // to the own process, each in a round of its own
  PollFlag work_due_;
  PollFlag peer_check_due_;                      // set before work_due_
  std::atomic<uint64_t> next_peer_check_ns_{0};  // written by the holder of the token
  PolledTransports transports_;
};

}  // namespace lintel

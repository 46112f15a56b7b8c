// The transports of an interface as its poller sees them: polled in turn, armed before it sleeps.
// Message path.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/progress/poll_flag.h"
#include "transport/transport.h"

namespace lintel {

class PolledTransports {
 public:
  static constexpr unsigned most_transports = 8;

  // Set-up path. False: there are too many.
  [[nodiscard]] bool add(Transport& transport) noexcept;

  // Polls one burst of each. The transport whose peers are all in this process is polled only after
  // a send to one of them. When it, or the first of the others if that wakes the progress thread
  // itself, has brought messages, the next rounds leave the rest out, until there were
  // most_left_out rounds and messages.
  unsigned poll(MessageSink& sink) noexcept LINTEL_REQUIRES(polling) {
    if (left_out_ <= 0) return poll_all(sink);
    const unsigned got = in_process_sends_.is_set() ? poll_in_process(sink)
                                                    : polled_[0].transport->poll(sink, budget);
    left_out_ -= static_cast<int>(got) + 1;
    return got;
  }
  // Whether a transport that is polled by system calls brought messages in the last poll().
  [[nodiscard]] bool polled_costly() const noexcept LINTEL_REQUIRES(polling) { return costly_; }
  // Any thread. True: messages came since the last call from a peer that cannot wake the progress
  // thread. So the thread must check often.
  [[nodiscard]] bool take_needs_ticks() noexcept {
    return needs_ticks_.exchange(always_needs_ticks_, std::memory_order_relaxed);
  }
  void check_peers(Transport& transport, MessageSink& sink, Link* const* links,
                   unsigned count) noexcept LINTEL_REQUIRES(polling) {
    current_ = &transport;
    transport.check_peers(sink, links, count);
    current_ = polled_[0].transport;
  }
  // The transport that calls the sink.
  [[nodiscard]] Transport& current() const noexcept LINTEL_REQUIRES(polling) { return *current_; }

  // See Transport.
  [[nodiscard]] bool arm(bool blocked_senders) noexcept LINTEL_REQUIRES(polling);
  void disarm() noexcept LINTEL_REQUIRES(polling);
  [[nodiscard]] int64_t sleep_limit_ns() const noexcept;  // negative: until the doorbell rings

  // Flag that is set after a send to a peer in this process: only the poller delivers the message.
  [[nodiscard]] PollFlag& in_process_sends() noexcept { return in_process_sends_; }

 private:
  static constexpr unsigned budget = 32;    // maximum number of messages of one burst
  static constexpr int most_left_out = 32;  // rounds and messages
  struct Polled {
    Transport* transport;
    bool by_system_call;
    bool wakes_progress;
  };
  unsigned poll_in_process(MessageSink& sink) noexcept LINTEL_REQUIRES(polling);
  unsigned poll_all(MessageSink& sink) noexcept LINTEL_REQUIRES(polling);

  Polled polled_[most_transports] = {};  // does not contain the in-process transport
  unsigned count_ = 0;
  Transport* in_process_ = nullptr;
  Transport* current_ = nullptr;  // the first between polls
  bool costly_ = false;
  int left_out_ = 0;  // rounds and messages until all transports are polled again; 0 if costly_
  bool always_needs_ticks_ = false;  // a transport wakes no thread when messages arrive
  std::atomic<bool> needs_ticks_{false};
  PollFlag in_process_sends_;
};

}  // namespace lintel

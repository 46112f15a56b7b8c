// Decides whether a look polls, and when its caller yields. A look is a call that tests for events
// and does not wait. One object per physical interface. Functions marked "token held" are for the
// holder of the poll token. Message path.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/progress/poller.h"
#include "core/progress/processor_load.h"
#include "core/progress/wait_heuristics.h"
#include "core/progress/wait_policy.h"
#include "util/clock.h"

namespace lintel {

class PassingPolicy {
 public:
  static constexpr uint32_t spared_after_costly = 2;
  static constexpr uint64_t spared_for_ns = 4'000;
  static constexpr uint32_t looks_between_rests = 8;
  static constexpr uint32_t looks_between_yields = 32;
  // Looks follow each other this closely when their caller does nothing else.
  static constexpr uint64_t idle_look_ns = 5'000;

  PassingPolicy(ProcessorLoad& load, Clock clock) noexcept : load_(load), clock_(clock) {}
  // Set-up path.
  void use(WaitHeuristics heuristics) noexcept;

  // Any thread: this look does not poll. After messages from a transport that is polled by system
  // calls, the next looks do not poll: callers look at each queue until all are empty, before they
  // answer. That does not apply to callers that look rarely.
  [[nodiscard]] bool spares_poll() noexcept {
    const uint32_t left = to_spare_.load(std::memory_order_relaxed);
    if (left == 0) return false;
    to_spare_.store(left - 1, std::memory_order_relaxed);
    return clock_() - last_costly_ns_.load(std::memory_order_relaxed) < spared_for_ns;
  }
  // Token held, after a poll. `costly`: a transport that is polled by system calls brought
  // messages. Returns the number of looks in a row without a message.
  [[nodiscard]] uint32_t note_result(bool found, bool costly) noexcept {
    if (!found) return ++idle_looks_;
    if (costly) [[unlikely]]
      spare_next();
    return idle_looks_ = 0;
  }
  // After that many idle looks it is time for wants_yield().
  [[nodiscard]] static bool is_rest_due(uint32_t idle_looks) noexcept {
    return idle_looks % looks_between_rests == 0 && idle_looks != 0;
  }
  // Any thread: the caller looks in a loop and others may want its processor.
  [[nodiscard]] bool wants_yield(uint32_t idle_looks, uint64_t now_ns) noexcept;
  void note_yield(uint64_t before_ns, uint64_t after_ns) noexcept {
    load_.note_yield(before_ns, after_ns);
    last_rest_ns_.store(after_ns, std::memory_order_relaxed);
  }
  // Whether a caller that looks at several queues in turn makes one poll for a turn, not one for
  // each queue.
  [[nodiscard]] bool shares_rounds() const noexcept { return shares_rounds_; }

 private:
  void spare_next() noexcept;

  ProcessorLoad& load_;
  const Clock clock_;
  uint32_t spared_after_costly_ = spared_after_costly;
  bool rests_ = true;
  bool shares_rounds_ = true;
  uint32_t idle_looks_ = 0;  // token held
  std::atomic<uint32_t> to_spare_{0};
  std::atomic<uint64_t> last_costly_ns_{0};
  std::atomic<uint64_t> last_rest_ns_{0};
  std::atomic<uint64_t> idle_since_ns_{0};
};

// Wait of a caller for which any message is worth a look, see Poller::poll_briefly().
struct AnyWork {
  [[nodiscard]] bool begin() const noexcept { return true; }
  [[nodiscard]] bool is_over() const noexcept { return true; }
  [[nodiscard]] bool end() const noexcept { return false; }
};

// Polls in passing, for calls that look for events and do not wait. PassingPolicy says when.
// Message path.
class PassingPolls {
 public:
  explicit PassingPolls(Poller& poller) noexcept : poller_(poller) {}
  // Set-up path.
  void use(WaitHeuristics heuristics) noexcept { policy_.use(heuristics); }
  // Set-up path: no progress thread looks at the clock, so these polls do.
  void check_peers() noexcept { checks_peers_ = true; }
  [[nodiscard]] bool checks_peers() const noexcept { return checks_peers_; }

  // Runs one round if no other thread polls. True: messages came, so it is worth looking again.
  bool poll() noexcept { return poll(AnyWork{}); }
  // The same for `wait`, see Poller::poll_briefly(). True: the wait is over.
  template <typename Wait>
  bool poll(const Wait& wait) noexcept {
    return !policy_.spares_poll() && poll_now(wait);
  }
  // The same for a caller that looks at all it waits for in one call: no look is spared.
  bool poll_now() noexcept { return poll_now(AnyWork{}); }
  template <typename Wait>
  [[gnu::always_inline]] bool poll_now(const Wait& wait) noexcept {
    if (!poller_.polls_by_callers()) return false;
    PollToken& token = poller_.token();
    if (!token.try_acquire()) [[unlikely]] {
      token.want_in_passing();
      return false;
    }
    if (checks_peers_) [[unlikely]]
      poller_.check_peers_if_due(now_ns());
    const bool waits = wait.begin();
    const bool found = poller_.run_round() != 0;
    bool is_over = waits && found && wait.is_over();
    if (waits) is_over |= wait.end();
    const uint32_t idle_looks = policy_.note_result(found, poller_.transports().polled_costly());
    token.release();
    if (PassingPolicy::is_rest_due(idle_looks)) [[unlikely]]
      rest(idle_looks);
    return is_over;
  }
  // The same for a queue, with its `round_seen`, unless spares().
  template <typename Wait>
  [[gnu::always_inline]] bool poll(std::atomic<uint64_t>& round_seen, const Wait& wait) noexcept {
    if (poll(wait)) return true;
    round_seen.store(poller_.token().rounds(), std::memory_order_relaxed);
    return false;
  }
  // This look at the queue needs no poll. A program that looks at several queues in turn needs one
  // poll for a turn, and must handle messages before there are more. So a look polls only if no
  // thread has polled since the last look at that queue. A poll that brought something counts as
  // another thread's. Of two idle looks in a row one polls.
  bool spares(std::atomic<uint64_t>& round_seen) noexcept {
    const uint64_t round = poller_.token().rounds();
    if (round == round_seen.load(std::memory_order_relaxed) || !policy_.shares_rounds())
      return false;
    round_seen.store(round, std::memory_order_relaxed);
    return true;
  }

 private:
  void rest(uint32_t idle_looks) noexcept;

  Poller& poller_;
  PassingPolicy policy_{processor_load(), quick_clock()};
  bool checks_peers_ = false;
};

}  // namespace lintel

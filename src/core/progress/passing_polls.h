// Polls in passing, for calls that look for events and do not wait. PassingPolicy says when and for
// how long. Message path.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/progress/passing_policy.h"
#include "core/progress/poller.h"

namespace lintel {

class PassingPolls {
 public:
  explicit PassingPolls(Poller& poller) noexcept : poller_(poller) {}
  // Set-up path.
  void use(WaitHeuristics heuristics) noexcept { policy_.use(heuristics); }

  // A few rounds if nobody else polls. True: messages came, so it is worth looking again.
  bool poll() noexcept {
    if (!poller_.polls_by_callers() || policy_.spares_poll()) return false;
    PollToken& token = poller_.token();
    if (!token.try_acquire()) [[unlikely]] {
      token.want_in_passing();
      return false;
    }
    token.note_application_poll();
    bool found = false;
    for (unsigned rounds = policy_.rounds(); rounds != 0 && !found; --rounds)
      found = poller_.poll_once() != 0;
    const uint32_t idle_looks = policy_.note_result(found, poller_.transports().polled_costly());
    token.release();
    if (PassingPolicy::is_rest_due(idle_looks)) [[unlikely]]
      rest(idle_looks);
    return found;
  }
  // The same for a queue, with its `round_seen`. A program that looks at several queues in turn
  // needs one poll for a turn, and must handle messages before there are more. So a look polls only
  // if no thread has polled since the last look at that queue. A poll that brought something counts
  // as another thread's. Of two idle looks in a row one polls.
  bool poll(std::atomic<uint64_t>& round_seen) noexcept {
    if (spares(round_seen)) return false;
    if (poll()) return true;
    round_seen.store(poller_.token().rounds(), std::memory_order_relaxed);
    return false;
  }
  // This look at the queue needs no poll.
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
};

}  // namespace lintel

// The poll token of a physical interface. Its holder polls, so one thread at a time moves messages.
// Other threads see here whether the holder polls, sleeps or is in a round, and request the token.
// Message path, except for Exclusive.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/events/wait_gate.h"
#include "transport/polling.h"
#include "util/counter.h"
#include "util/spin_lock.h"

namespace lintel {

class PollToken {
 public:
  [[nodiscard]] bool try_acquire() noexcept
      LINTEL_TRY_ACQUIRE(true, polling) LINTEL_UNCHECKED_LOCKS {
    return lock_.try_lock();
  }
  void release() noexcept LINTEL_RELEASE(polling) LINTEL_UNCHECKED_LOCKS { lock_.unlock(); }

  // Set-up path: holds the token against all who poll.
  class LINTEL_SCOPED_CAPABILITY Exclusive {
   public:
    Exclusive(PollToken& token, WaitGate& gate) noexcept LINTEL_ACQUIRE(polling);
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;
    ~Exclusive() LINTEL_RELEASE();

   private:
    PollToken& token_;
  };
  // The thread that polls is to give the token back.
  [[nodiscard]] bool exclusively_wanted() const noexcept {
    return exclusive_requests_.load(std::memory_order_relaxed) != 0;
  }

  // Waiting threads that found the token taken say so, and take it back.
  void want() noexcept { waiting_.fetch_add(1, std::memory_order_relaxed); }
  void want_no_more() noexcept { waiting_.fetch_sub(1, std::memory_order_relaxed); }
  // The same for calls that do not wait. May let the holder have the processor.
  void want_in_passing() noexcept;
  void forget_passing_wants() noexcept {
    wanted_in_passing_.store(false, std::memory_order_relaxed);
  }
  [[nodiscard]] bool wanted() const noexcept {
    return waiting_.load(std::memory_order_relaxed) != 0 ||
           wanted_in_passing_.load(std::memory_order_relaxed);
  }

  // A waiting thread sleeps with the token. hand_off() releases this, and handoffs() acquires it.
  void set_asleep(bool asleep) noexcept { asleep_.store(asleep, std::memory_order_relaxed); }
  [[nodiscard]] bool asleep() const noexcept { return asleep_.load(std::memory_order_relaxed); }

  // A waiting thread that slept with the token has left: wakes the thread that waits for that.
  void hand_off() noexcept;
  [[nodiscard]] uint32_t handoffs() const noexcept {
    return handoffs_.load(std::memory_order_acquire);
  }
  // Returns when there were more handoffs than `seen`, or after the time.
  void await_handoff(uint32_t seen, int64_t timeout_ns) noexcept;

  // Posting an event releases the store of begin_round(): a thread that sees the event reads
  // an odd number. The order is for a thread in finish_round() that sees the next round begin and
  // not this one end.
  void begin_round() noexcept LINTEL_REQUIRES(polling) {
    add_unshared(rounds_, uint64_t{1}, std::memory_order_release);
  }
  void end_round() noexcept LINTEL_REQUIRES(polling) {
    add_unshared(rounds_, uint64_t{1}, std::memory_order_release);
  }
  // Begun and ended rounds together.
  [[nodiscard]] uint64_t rounds() const noexcept { return rounds_.load(std::memory_order_acquire); }
  // Any thread that is in no round: waits for the end of the running round, if there is one. A
  // thread that sees an event or a count may release what it refers to, while the round that posted
  // it may still read there.
  void finish_round() const noexcept;

 private:
  SpinLock lock_;
  std::atomic<bool> asleep_{false};
  std::atomic<bool> wanted_in_passing_{false};
  std::atomic<uint32_t> exclusive_requests_{0};
  std::atomic<uint32_t> waiting_{0};
  std::atomic<uint32_t> handoffs_{0};
  std::atomic<uint64_t> rounds_{0};  // odd while one is running
};

}  // namespace lintel

// The wait of an application thread: it takes the poll token and polls; from time to time the
// WaitPolicy decides whether it continues to poll, yields or sleeps.
// Message path until it sleeps.
#pragma once

#include <cstdint>

#include "core/progress/poller.h"
#include "core/progress/wait_policy.h"
#include "util/clock.h"

namespace lintel {

// PtlAbort was called (spec 3.5.3). Async-signal-safe to read and set.
extern std::atomic<bool> portals_aborted;

class Waiter {
 public:
  Waiter(Poller& poller, WaitPolicy& policy, uint64_t deadline_ns) noexcept
      : poller_(poller), token_(poller.token()), policy_(policy), deadline_ns_(deadline_ns) {
    holds_token_ = poller.polls_by_callers() && token_.try_acquire();
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() { leave(); }

  // Makes one short step: a poll, if this thread is the one that polls. Work that the poll finds
  // restarts the idle time after which the thread sleeps. True: check whether the wait is over.
  // After a poll without work only another thread can have ended it, so the check can wait.
  bool step() noexcept {
    if (holds_token_) [[likely]] {
      polling.assert_held();
      const bool worked = poller_.poll_once() != 0;
      if (worked) idle_since_ns_ = 0;
      return worked;
    }
    spin_hint();
    if ((++steps_without_token_ & 15) == 0) try_token();
    return true;
  }

  enum class Pause : uint8_t { go_on, give_up };
  // Called after WaitPolicy::polls() steps: yields or sleeps when it is time. `ready` returns
  // whether the wait is over; it is called again just before sleeping.
  struct Condition {
    bool (*holds)(void*);
    void* argument;
  };
  [[nodiscard]] Pause pause(Condition ready) noexcept;

 private:
  void try_token() noexcept;
  void leave() noexcept;
  void step_aside() noexcept;
  void sleep(Condition ready, uint64_t now) noexcept;
  void sleep_as_poller(Condition ready, int64_t timeout_ns) noexcept LINTEL_REQUIRES(polling);
  void sleep_as_bystander(Condition ready, int64_t timeout_ns) noexcept;

  Poller& poller_;
  PollToken& token_;
  WaitPolicy& policy_;
  uint64_t deadline_ns_;
  uint64_t idle_since_ns_ = 0;
  unsigned steps_without_token_ = 0;
  bool holds_token_;
  bool wants_token_ = false;
  bool slept_as_poller_ = false;
};

inline constexpr unsigned steps_between_looks = 8;

// Waits until ready() is true; ready() is called often and may consume. False: the deadline
// (now_ns() based, UINT64_MAX for none) passed, or PtlAbort was called.
template <typename Ready>
bool wait_until(Poller& poller, WaitPolicy& policy, Ready&& ready, uint64_t deadline_ns) noexcept {
  Waiter waiter(poller, policy, deadline_ns);
  struct Context {
    Ready& ready;
    bool fulfilled;
  } context{ready, false};
  const Waiter::Condition condition{[](void* argument) {
                                      auto* c = static_cast<Context*>(argument);
                                      c->fulfilled = c->ready();
                                      return c->fulfilled;
                                    },
                                    &context};
  for (;;) {
    const unsigned steps = policy.polls();
    for (unsigned i = 1; i <= steps; ++i) {
      if ((waiter.step() || i % steps_between_looks == 0 || i == steps) && ready()) return true;
    }
    const Waiter::Pause verdict = waiter.pause(condition);
    if (context.fulfilled) return true;
    if (verdict == Waiter::Pause::give_up) return false;
  }
}

}  // namespace lintel

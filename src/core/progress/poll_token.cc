#include "core/progress/poll_token.h"

#include <sched.h>

#include "util/futex.h"

namespace lintel {

PollToken::Exclusive::Exclusive(PollToken& token, WaitGate& gate) noexcept LINTEL_UNCHECKED_LOCKS
    : token_(token) {
  token_.exclusive_requests_.fetch_add(1, std::memory_order_relaxed);
  gate.wake_all();
  token_.lock_.lock();
}

PollToken::Exclusive::~Exclusive() LINTEL_UNCHECKED_LOCKS {
  token_.lock_.unlock();
  token_.exclusive_requests_.fetch_sub(1, std::memory_order_relaxed);
}

// Another thread polls, but may have lost the processor to this one. This thread would then look
// without result until its time slice ends.
void PollToken::want_in_passing() noexcept {
  constexpr uint32_t looks_between_yields = 32;
  thread_local uint32_t looks = 0;
  wanted_in_passing_.store(true, std::memory_order_relaxed);
  if (++looks % looks_between_yields == 0) sched_yield();
}

void PollToken::hand_off() noexcept {
  handoffs_.fetch_add(1, std::memory_order_release);
  futex_wake(handoffs_);
}

void PollToken::await_handoff(uint32_t seen, int64_t timeout_ns) noexcept {
  futex_wait(handoffs_, seen, timeout_ns);
}

void PollToken::finish_round() const noexcept {
  const uint64_t round = rounds();
  if (round % 2 == 0) return;
  constexpr unsigned looks_between_yields = 200;
  for (unsigned looks = 1; rounds() == round; ++looks)
    if (looks % looks_between_yields == 0) sched_yield();
}

}  // namespace lintel

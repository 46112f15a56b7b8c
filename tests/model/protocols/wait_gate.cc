// WaitGate: a thread that waits for an event sleeps on the gate, or on the doorbell if it is the
// poller as well. Then one membarrier serves both.
#include "core/events/wait_gate.h"

#include "program.h"

namespace lintel::model {
namespace {

template <bool membarrier>
struct Waiting {
  Doorbell bell;
  WaitGate gate;
  std::atomic<uint32_t> event{0};
  std::atomic<uint32_t> message{0};

  Waiting() {
    fence_detail::registered.store(membarrier, std::memory_order_relaxed);
    bell.full_fences.store(membarrier ? 0 : 1, std::memory_order_relaxed);
    gate.set_doorbell(&bell);
  }
  void post() {
    event.store(1, std::memory_order_release);
    gate.notify();
  }
  // As who wants the poll token: no order precedes the wake-up.
  void want() {
    event.store(1, std::memory_order_relaxed);
    gate.wake_all();
  }
  void post_message() {
    message.store(1, std::memory_order_release);
    gate.notify();
  }
  void send() {
    message.store(1, std::memory_order_release);
    bell.ring_if_sleeping();
  }
  [[nodiscard]] bool posted() const { return event.load(std::memory_order_acquire) != 0; }
  void wait_as_bystander() {
    while (!posted()) {
      const uint32_t seen = gate.prepare();
      if (!posted()) gate.sleep(seen, futex_no_timeout);
      gate.finish();
    }
  }
  [[nodiscard]] bool both() const {
    return posted() && message.load(std::memory_order_acquire) != 0;
  }
  void wait_for_both() {
    while (!both()) {
      const uint32_t seen = gate.prepare();
      if (!both()) gate.sleep(seen, futex_no_timeout);
      gate.finish();
    }
  }
  void wait_as_poller() {
    while (!both()) {
      gate.announce();
      const uint32_t seen = bell.announce_sleep();
      if (!both()) bell.sleep(seen, futex_no_timeout);
      gate.finish();
    }
  }
  void wait_as_poller_for_event() {
    while (!posted()) {
      gate.announce();
      const uint32_t seen = bell.announce_sleep();
      if (!posted()) bell.sleep(seen, futex_no_timeout);
      gate.finish();
    }
  }
};

}  // namespace

Protocol wait_gate() {
  using With = Waiting<true>;
  using Without = Waiting<false>;
  return {"WaitGate",
          {"core/events/wait_gate.h", "util/asymmetric_fence"},
          {share<With>("membarrier, bystander", {&With::wait_as_bystander, &With::post}),
           share<With>("membarrier, two bystanders",
                       {&With::wait_as_bystander, &With::wait_as_bystander, &With::post}),
           share<With>("membarrier, two events",
                       {&With::wait_for_both, &With::post, &With::post_message}),
           share<With>("woken in any case", {&With::wait_as_bystander, &With::want}),
           share<With>("membarrier, poller", {&With::wait_as_poller_for_event, &With::post}),
           share<With>("membarrier, poller, message and event",
                       {&With::wait_as_poller, &With::post, &With::send}),
           share<Without>("full fences, bystander", {&Without::wait_as_bystander, &Without::post}),
           share<Without>("full fences, poller",
                          {&Without::wait_as_poller_for_event, &Without::post})}};
}

}  // namespace lintel::model

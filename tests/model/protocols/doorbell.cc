// Doorbell and asymmetric fences: a message that is published before or while its receiver goes to
// sleep wakes it. Both with membarrier and with full fences in its place.
#include "util/doorbell.h"

#include "program.h"

namespace lintel::model {
namespace {

template <bool membarrier, unsigned senders>
struct Sleeper {
  Doorbell bell;
  std::atomic<uint32_t> published[2]{};
  int payload[2]{};

  Sleeper() {
    fence_detail::registered.store(membarrier, std::memory_order_relaxed);
    bell.full_fences.store(membarrier ? 0 : 1, std::memory_order_relaxed);
  }
  void send(unsigned number) {
    payload[number] = 7;
    published[number].store(1, std::memory_order_release);
    bell.ring_if_sleeping();
  }
  void first() { send(0); }
  void second() { send(1); }
  [[nodiscard]] bool has_all() {
    for (unsigned i = 0; i < senders; ++i) {
      if (published[i].load(std::memory_order_acquire) == 0) return false;
      require(payload[i] == 7, "the payload is there");
    }
    return true;
  }
  void receive() {
    while (!has_all()) {
      const uint32_t seen = bell.announce_sleep();
      if (has_all()) return;
      bell.sleep(seen, futex_no_timeout);
    }
  }
};

// The progress thread sleeps beside a poller. Its stop and the payload precede ring().
struct BesidePoller {
  Doorbell bell;
  int payload = 0;
  void stop() {
    payload = 7;
    bell.ring();
  }
  void watch() {
    const uint32_t seen = bell.rings.load(std::memory_order_acquire);
    if (seen == 0)
      while (!bell.sleep_beside_poller(seen, futex_no_timeout)) {
      }
    require(payload == 7, "what precedes ring() is there");
  }
};

}  // namespace

Protocol doorbell() {
  using One = Sleeper<true, 1>;
  using Two = Sleeper<true, 2>;
  using Full = Sleeper<false, 1>;
  return {"Doorbell, asymmetric fences",
          {"util/doorbell.h", "util/asymmetric_fence"},
          {share<One>("membarrier, one sender", {&One::receive, &One::first}),
           share<Two>("membarrier, two senders", {&Two::receive, &Two::first, &Two::second}),
           share<Full>("full fences, one sender", {&Full::receive, &Full::first}),
           share<BesidePoller>("beside a poller", {&BesidePoller::watch, &BesidePoller::stop})}};
}

}  // namespace lintel::model

// DescriptorWatch: a frame that arrives when the poller stops to poll the link, or later, is
// noticed, also if the watch has just fired. The kernel's epoll is a word that its lock guards.
#include "util/descriptor_watch.h"

#include <sys/epoll.h>

#include "program.h"
#include "reliable/connection_timers.h"
#include "util/new_descriptor.h"

namespace lintel {

Descriptor make_event() noexcept { return {}; }
Descriptor make_epoll() noexcept { return {}; }

namespace model {
namespace {

constexpr int socket_descriptor = 3;
constexpr uint32_t armed = 1;
constexpr uint32_t readable = 2;
constexpr uint32_t stopped = 4;
std::atomic<uint32_t>* kernel = nullptr;

struct Watched {
  std::atomic<uint32_t> epoll{0};
  Doorbell bell;
  PollerWakeup wakeup;
  DescriptorWatch watch;
  int frame = 0;

  Watched() {
    fence_detail::registered.store(true, std::memory_order_relaxed);
    kernel = &epoll;
    wakeup.set_doorbell(bell);
    std::string reason;
    require(watch.start(socket_descriptor, wakeup.flag(), bell, reason), "the watch starts");
  }
  void arrive() {
    frame = 1;
    epoll.fetch_or(readable, std::memory_order_acq_rel);
  }
  void run_watch() { ServiceThread::run_started(); }
  void receive() {
    const uint32_t before = epoll.fetch_and(~readable, std::memory_order_acq_rel);
    require((before & readable) != 0 && frame == 1, "the frame is there");
    watch.stop();
  }
  // As QuietLink::start_watching() and QuietLink::is_worth_asking().
  void go_quiet() {
    wakeup.reset();
    watch.enable();
    while (!wakeup.is_set()) {
    }
    watch.disable();
    receive();
  }
  // As a thread that sleeps while the link is not quiet.
  void sleep() {
    for (;;) {
      if ((epoll.load(std::memory_order_acquire) & readable) != 0) return receive();
      const uint32_t announced = bell.announce_sleep();
      wakeup.reset();
      watch.enable();
      bell.sleep(announced, futex_no_timeout);
    }
  }
};
// The watch is enabled since the poller slept.
struct Enabled : Watched {
  Enabled() { watch.enable(); }
};

}  // namespace

Protocol descriptor_watch() {
  return {"DescriptorWatch",
          {"util/descriptor_watch"},
          {share<Watched>("the link becomes quiet",
                          {&Watched::go_quiet, &Watched::run_watch, &Watched::arrive}),
           share<Enabled>("the link becomes quiet, enabled before",
                          {&Enabled::go_quiet, &Enabled::run_watch, &Enabled::arrive}),
           share<Watched>("sleep", {&Watched::sleep, &Watched::run_watch, &Watched::arrive}),
           share<Enabled>("sleep, enabled before",
                          {&Enabled::sleep, &Enabled::run_watch, &Enabled::arrive})}};
}

}  // namespace model
}  // namespace lintel

extern "C" {
int __wrap_epoll_ctl(int, int operation, int descriptor, epoll_event* event) {
  using namespace lintel::model;
  if (descriptor != socket_descriptor) return 0;
  if (operation != EPOLL_CTL_DEL && (event->events & EPOLLIN) != 0)
    kernel->fetch_or(armed, std::memory_order_acq_rel);
  else
    kernel->fetch_and(~armed, std::memory_order_acq_rel);
  return 0;
}
int __wrap_epoll_wait(int, epoll_event* event, int, int) {
  using namespace lintel::model;
  for (;;) {
    uint32_t now = kernel->load(std::memory_order_acquire);
    const bool fires = (now & (armed | readable)) == (armed | readable);
    if ((now & stopped) == 0 &&
        (!fires || !kernel->compare_exchange_strong(now, now & ~armed, std::memory_order_acq_rel)))
      continue;
    event->data.fd = (now & stopped) != 0 ? -1 : socket_descriptor;
    return 1;
  }
}
ssize_t __wrap_write(int, const void*, size_t bytes) {
  lintel::model::kernel->fetch_or(lintel::model::stopped, std::memory_order_acq_rel);
  return static_cast<ssize_t>(bytes);
}
}  // extern "C"

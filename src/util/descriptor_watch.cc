// The watching thread. Path into and out of sleep.
#include "util/descriptor_watch.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace lintel {

bool DescriptorWatch::start(int descriptor, std::atomic<bool>& noticed, Doorbell& doorbell,
                            std::string& reason) noexcept {
  descriptor_ = descriptor;
  noticed_ = &noticed;
  doorbell_ = &doorbell;
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  stop_event_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  // Disabled: not even errors are reported, which EPOLLONESHOT alone would let through once.
  epoll_event of_descriptor{.events = EPOLLONESHOT, .data = {.fd = descriptor}};
  epoll_event of_stop{.events = EPOLLIN, .data = {.fd = stop_event_.get()}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &of_descriptor) != 0 ||
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stop_event_.get(), &of_stop) != 0) {
    reason = std::string("epoll: ") + strerror(errno);
    return false;
  }
  return thread_.start<&DescriptorWatch::run>(*this, "ptl-watch", reason);
}

void DescriptorWatch::stop() noexcept {
  const uint64_t one = 1;
  if (running()) static_cast<void>(!write(stop_event_.get(), &one, sizeof one));
  thread_.join();
}

void DescriptorWatch::set_interest(uint32_t events) noexcept {
  epoll_event event{.events = events | EPOLLONESHOT, .data = {.fd = descriptor_}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor_, &event);
}

void DescriptorWatch::enable() noexcept {
  if (enabled_.exchange(true, std::memory_order_acq_rel)) return;
  set_interest(EPOLLIN);
}

void DescriptorWatch::disable() noexcept {
  if (!enabled_.exchange(false, std::memory_order_acq_rel)) return;
  set_interest(0);
}

void DescriptorWatch::run() noexcept {
  for (;;) {
    epoll_event event;
    const int count = epoll_wait(epoll_.get(), &event, 1, -1);
    if (count < 0 && errno != EINTR) return;
    if (count <= 0) continue;
    if (event.data.fd == stop_event_.get()) return;
    // Disabled before the poller is told, which may enable the watch again at once.
    enabled_.store(false, std::memory_order_release);
    noticed_->store(true, std::memory_order_seq_cst);
    doorbell_->ring_if_sleeping();
  }
}

}  // namespace lintel

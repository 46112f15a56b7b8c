// The watching thread. Path into and out of sleep.
#include "util/descriptor_watch.h"

#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>

#include "util/new_descriptor.h"
#include "util/uninterrupted.h"

namespace lintel {

namespace {
constexpr useconds_t interrupted_pause_us = 1000;
}  // namespace

bool DescriptorWatch::start(int descriptor, std::atomic<bool>& noticed, Doorbell& doorbell,
                            std::string& reason) noexcept {
  descriptor_ = descriptor;
  noticed_ = &noticed;
  doorbell_ = &doorbell;
  epoll_ = make_epoll();
  stop_event_ = make_event();
  epoll_event of_stop{.events = EPOLLIN, .data = {.fd = stop_event_.get()}};
  // The descriptor is added here to learn whether that is possible at all.
  if (!control(EPOLL_CTL_ADD, 0) || !control(EPOLL_CTL_DEL, 0) ||
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stop_event_.get(), &of_stop) != 0) {
    reason = std::string("epoll: ") + strerror(errno);
    return false;
  }
  return thread_.start<&DescriptorWatch::run>(*this, "ptl-watch", reason);
}

void DescriptorWatch::stop() noexcept {
  const uint64_t one = 1;
  stopping_.store(true, std::memory_order_relaxed);
  if (running()) static_cast<void>(!write(stop_event_.get(), &one, sizeof one));
  thread_.join();
}

bool DescriptorWatch::control(int operation, uint32_t events) noexcept {
  epoll_event event{.events = events | EPOLLONESHOT, .data = {.fd = descriptor_}};
  return epoll_ctl(epoll_.get(), operation, descriptor_, &event) == 0;
}

void DescriptorWatch::enable() noexcept {
  if (enabled_.exchange(true, std::memory_order_release)) return;
  control(attached_ ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, EPOLLIN);
  attached_ = true;
}

void DescriptorWatch::disable() noexcept {
  if (enabled_.exchange(false, std::memory_order_relaxed)) control(EPOLL_CTL_MOD, 0);
}

void DescriptorWatch::detach() noexcept {
  if (attached_) control(EPOLL_CTL_DEL, 0);
  attached_ = false;
}

void DescriptorWatch::run() noexcept {
  unsigned interruptions = 0;
  for (;;) {
    epoll_event event{};
    const int count = epoll_wait(epoll_.get(), &event, 1, -1);
    if (count < 0 && errno != EINTR) return;
    if (count < 0 && ++interruptions <= most_interruptions) continue;
    if (count < 0) {
      // The kernel, or a filter of system calls, interrupts each wait: the poller looks instead.
      usleep(interrupted_pause_us);
      if (stopping_.load(std::memory_order_relaxed)) return;
    } else {
      interruptions = 0;
      if (count == 0) continue;
      if (event.data.fd == stop_event_.get()) return;
    }
    // The watch is disabled before the poller is notified, which may enable it again at once. If it
    // has found the watch enabled just now, the notice follows its reset.
    enabled_.exchange(false, std::memory_order_acquire);
    noticed_->store(true, std::memory_order_relaxed);
    doorbell_->ring_if_sleeping();
  }
}

}  // namespace lintel

// The watching thread. Path into and out of sleep.
#include "util/descriptor_watch.h"

#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace lintel {

namespace {

void close_descriptor(int& descriptor) noexcept {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

}  // namespace

bool DescriptorWatch::start(int descriptor, std::atomic<bool>& noticed, Doorbell& doorbell,
                            std::string& reason) noexcept {
  descriptor_ = descriptor;
  noticed_ = &noticed;
  doorbell_ = &doorbell;
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  stop_event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event of_descriptor{.events = EPOLLONESHOT, .data = {.fd = descriptor}};
  epoll_event of_stop{.events = EPOLLIN, .data = {.fd = stop_event_}};
  // Disabled: not even errors are reported, which EPOLLONESHOT alone would let through once.
  if (epoll_ < 0 || stop_event_ < 0 ||
      epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &of_descriptor) != 0 ||
      epoll_ctl(epoll_, EPOLL_CTL_ADD, stop_event_, &of_stop) != 0) {
    reason = std::string("epoll: ") + strerror(errno);
    close_descriptor(epoll_);
    close_descriptor(stop_event_);
    return false;
  }
  // Signals are the application's: none is to be handled on this thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread_, nullptr, &DescriptorWatch::entry, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    reason = std::string("cannot start a thread: ") + strerror(error);
    close_descriptor(epoll_);
    close_descriptor(stop_event_);
    return false;
  }
  running_ = true;
  pthread_setname_np(thread_, "ptl-watch");
  return true;
}

void DescriptorWatch::stop() noexcept {
  if (running_) {
    const uint64_t one = 1;
    if (write(stop_event_, &one, sizeof one) == sizeof one) pthread_join(thread_, nullptr);
    running_ = false;
  }
  close_descriptor(epoll_);
  close_descriptor(stop_event_);
}

void DescriptorWatch::set_interest(uint32_t events) noexcept {
  epoll_event event{.events = events | EPOLLONESHOT, .data = {.fd = descriptor_}};
  epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor_, &event);
}

void DescriptorWatch::enable() noexcept {
  if (enabled_.exchange(true, std::memory_order_acq_rel)) return;
  set_interest(EPOLLIN);
}

void DescriptorWatch::disable() noexcept {
  if (!enabled_.exchange(false, std::memory_order_acq_rel)) return;
  set_interest(0);
}

void* DescriptorWatch::entry(void* self) noexcept {
  static_cast<DescriptorWatch*>(self)->run();
  return nullptr;
}

void DescriptorWatch::run() noexcept {
  for (;;) {
    epoll_event event;
    const int count = epoll_wait(epoll_, &event, 1, -1);
    if (count < 0 && errno != EINTR) return;
    if (count <= 0) continue;
    if (event.data.fd == stop_event_) return;
    // Disabled before it is told: whoever hears of it may enable the watch again at once.
    enabled_.store(false, std::memory_order_release);
    noticed_->store(true, std::memory_order_seq_cst);
    doorbell_->ring_if_sleeping();
  }
}

}  // namespace lintel

#include "domain/event_pump.h"

#include <portals4_lintel.h>
#include <sched.h>
#include <time.h>

#include <algorithm>

#include "base/assert.h"
#include "base/provider.h"
#include "domain/domain.h"

namespace lintel::ofi {
namespace {

constexpr auto peer_check_interval = std::chrono::milliseconds(500);
constexpr unsigned looks_per_check = 32;  // at the clock
constexpr unsigned most_events = 256;     // of one progress()
constexpr int longest_sleep_ms = 20;      // until fi_cq_signal is noticed
constexpr unsigned rounds_awake = 200;    // of a wait among several threads
constexpr long shared_sleep_ns = 50'000;  // then

}  // namespace

bool EventPump::take_events(size_t most) {
  next_taken_ = taken_ = 0;
  if (domain_.watcher().is_taking()) [[unlikely]]
    return false;
  const int code =
      PtlLintelEQGetMany(domain_.network().events(), events_,
                         static_cast<unsigned>(std::min<size_t>(most, most_taken)), &taken_);
  if (code == PTL_OK) [[likely]]
    return true;
  if (code == PTL_EQ_EMPTY) found_nothing();
  if (code == PTL_EQ_DROPPED) report_loss();
  return code == PTL_EQ_DROPPED;
}

void EventPump::found_nothing() {
  if ((++empty_looks_ % looks_per_check) == 0) [[unlikely]]
    check_peers();
}

void EventPump::take(const ptl_event_t& event, int code) {
  if (code == PTL_EQ_DROPPED) [[unlikely]]
    report_loss();
  if (code == PTL_OK || code == PTL_EQ_DROPPED) handle(event);
}

void EventPump::progress() {
  bool more = handle_event();
  for (unsigned i = 1; more && (i < most_events || next_taken_ != taken_); ++i)
    more = handle_next(most_taken);
  finish();
}

void EventPump::check_peers() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_check_) return;
  next_check_ = now + peer_check_interval;
  check_peers_(domain_);
}

void EventPump::drain() {
  domain_.watcher().pause();
  while (handle_next(most_taken)) {
  }
}

void EventPump::wait(const Deadline& deadline, unsigned round) {
  if (domain_.lock().is_needed()) {
    // Other threads may take events meanwhile, so this one must not sleep in Portals.
    if (round < rounds_awake) {
      sched_yield();
    } else {
      const timespec pause = {.tv_sec = 0, .tv_nsec = shared_sleep_ns};
      nanosleep(&pause, nullptr);
    }
    return;
  }
  OFI_ASSERT(next_taken_ == taken_);  // an event of this call would overtake
  const int left_ms = deadline.left_ms(longest_sleep_ms);
  if (left_ms == 0) return;
  ptl_event_t event;
  unsigned which = 0;
  const ptl_handle_eq_t queue = domain_.network().events();
  take(event, PtlEQPoll(&queue, 1, static_cast<ptl_time_t>(left_ms), &event, &which));
}

void EventPump::delay(DelayedReceives& receives) {
  if (std::find(delayed_.begin(), delayed_.end(), &receives) == delayed_.end())
    delayed_.push_back(&receives);
}

void EventPump::forget(const DelayedReceives& receives) noexcept {
  std::erase(delayed_, &receives);
}

void EventPump::post_delayed() {
  std::erase_if(delayed_, [](DelayedReceives* receives) { return receives->post_delayed(); });
}

bool EventPump::may_transmit(size_t operations) {
  if (transmits_ + operations <= most_transmits_) [[likely]]
    return true;
  progress();
  return transmits_ + operations <= most_transmits_;
}

void EventPump::report_loss() {
  FI_WARN(provider(), FI_LOG_CQ,
          "Events were lost, as the program did not read its completion queues for too long: raise "
          "FI_LINTEL_EVENTS, or call fi_cq_read more often.\n");
  for (LossObserver* const observer : observers_) observer->events_were_lost();
}

}  // namespace lintel::ofi

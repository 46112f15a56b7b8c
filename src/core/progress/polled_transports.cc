#include "core/progress/polled_transports.h"

#include "util/futex.h"

namespace lintel {

bool PolledTransports::add(Transport& transport) noexcept {
  const Capabilities& capabilities = transport.capabilities();
  if (capabilities.in_process) {
    in_process_ = &transport;
    return true;
  }
  if (count_ == most_transports) return false;
  polled_[count_++] = {&transport, capabilities.polls_by_system_call, capabilities.wakes_progress};
  // A transport that is polled by system calls rings the doorbell for arrivals after a pause.
  always_needs_ticks_ |= !capabilities.wakes_progress && !capabilities.polls_by_system_call;
  return true;
}

unsigned PolledTransports::poll_all(MessageSink& sink) noexcept {
  unsigned handled = 0;
  costly_ = false;
  left_out_ = 0;
  if (in_process_sends_.is_set()) {
    handled = poll_in_process(sink);
    if (count_ != 0 && polled_[0].wakes_progress) left_out_ = most_left_out;
  }
  for (unsigned i = 0; i < count_; ++i) {
    current_ = polled_[i].transport;
    const unsigned got = current_->poll(sink, budget);
    if (got == 0) continue;
    handled += got;
    if (polled_[i].wakes_progress) {
      if (i == 0) left_out_ = most_left_out;
      continue;
    }
    needs_ticks_.store(true, std::memory_order_relaxed);
    if (polled_[i].by_system_call) costly_ = true;
  }
  if (costly_) left_out_ = 0;
  current_ = polled_[0].transport;
  return handled;
}

unsigned PolledTransports::poll_in_process(MessageSink& sink) noexcept {
  unsigned handled = 0;
  // A message that is handled may send another, as an acknowledgement, and sets the flag again.
  current_ = in_process_;
  while (handled < budget && in_process_sends_.take())
    handled += in_process_->poll(sink, budget - handled);
  if (handled >= budget) in_process_sends_.set();
  current_ = polled_[0].transport;
  return handled;
}

bool PolledTransports::arm(bool blocked_senders) noexcept {
  for (unsigned i = 0; i < count_; ++i)
    if (!polled_[i].transport->arm(blocked_senders)) return false;
  return in_process_ == nullptr || in_process_->arm(blocked_senders);
}

void PolledTransports::disarm() noexcept {
  for (unsigned i = 0; i < count_; ++i) polled_[i].transport->disarm();
  if (in_process_ != nullptr) in_process_->disarm();
}

int64_t PolledTransports::sleep_limit_ns() const noexcept {
  int64_t limit_ns = futex_no_timeout;
  for (unsigned i = 0; i < count_; ++i) {
    const int64_t wish_ns = polled_[i].transport->sleep_limit_ns();
    if (wish_ns >= 0 && (limit_ns < 0 || wish_ns < limit_ns)) limit_ns = wish_ns;
  }
  return limit_ns;
}

}  // namespace lintel

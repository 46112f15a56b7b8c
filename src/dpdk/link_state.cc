// Whether anybody is at the other end, and when the port may be used. Connection path, reached by the
// poller every so many receptions.
#include <mutex>

#include "dpdk/dpdk_link.h"
#include "util/clock.h"
#include "util/log.h"

namespace lintel {

namespace {

// The interrupt thread of a port that needs the gate goes round this often; the other side's end is
// noticed that much later.
constexpr uint64_t between_rests_ns = 100'000'000;

}  // namespace

void DpdkLink::set_state(State state) noexcept {
  {
    const std::lock_guard guard(send_lock_);
    state_ = state;
  }
  if (state == State::resting) return;
  reaches_network_.store(state == State::up, std::memory_order_relaxed);
}

void DpdkLink::look_after_link() noexcept {
  looks_ = 0;
  if (gate_ == nullptr) {
    // The driver copes with frames that nobody gets.
    if (state_ == State::down) set_state(State::up);
    reaches_network_.store(!port_->is_hardware() || port_->link_is_up(), std::memory_order_relaxed);
    return;
  }
  const uint64_t now = now_ns();
  if (state_ != State::up) {
    bring_up(now);
  } else if (now >= next_rest_ns_) {
    set_state(State::resting);
    gate_->let_round();
  }
}

// The driver may be touched only while the gate holds, and the interrupt thread makes the connection
// only while it does not.
void DpdkLink::bring_up(uint64_t now) noexcept {
  if (!port_->link_is_up()) {
    if (gate_closed_) gate_->open();
    gate_closed_ = false;
    if (state_ != State::down) {
      set_state(State::down);
      next_start_ns_ = now;
    }
    if (now >= next_start_ns_) start_again(now);
    return;
  }
  if (!gate_closed_) {
    gate_closed_ = true;
    gate_->close();
  }
  if (!gate_->holds()) return;
  // It may have been lost before the gate held.
  if (!port_->link_is_up()) return;
  next_rest_ns_ = now + between_rests_ns;
  const bool is_new = state_ == State::down;
  set_state(State::up);
  if (is_new) send_discovery(discovery_.claim());
}

// Servers wait for whoever comes; clients have to knock again.
void DpdkLink::start_again(uint64_t now) noexcept {
  if (!port_->starts_connections()) {
    next_start_ns_ = UINT64_MAX;
    return;
  }
  gate_->close_and_wait();
  std::string ignored;
  port_->stop();
  const bool started = port_->start(ignored);
  next_start_ns_ = now + (started ? until_up_ns : between_starts_ns);
  gate_->open();
}

}  // namespace lintel

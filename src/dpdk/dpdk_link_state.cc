// Connections of a memif come and go. Connection path.
#include "dpdk/dpdk_link_state.h"

#include <string>

#include "util/clock.h"

namespace lintel {

namespace {

using State = DpdkSender::State;

// How often the gate lets the interrupt thread of a port run once. The end of the other side is
// noticed that much later.
constexpr uint64_t between_rests_ns = 100'000'000;
// A memif whose other side is not there is started again, and so is one that was let in but does
// not come up, though not soon: the driver at the other side cannot cope with a client that leaves
// before it is let in.
constexpr uint64_t between_starts_ns = 20'000'000;
constexpr uint64_t until_up_ns = 2'000'000'000;

}  // namespace

DpdkLinkState::DpdkLinkState(Port& port, InterruptGate* gate, DpdkSender& sender,
                             Discovery& discovery) noexcept
    : port_(port),
      gate_(gate),
      sender_(sender),
      discovery_(discovery),
      next_start_ns_(now_ns() + (port.started() ? until_up_ns : between_starts_ns)) {}

void DpdkLinkState::set_state(State state) noexcept {
  sender_.set_state(state);
  if (state != State::resting)
    reaches_network_.store(state == State::up, std::memory_order_relaxed);
}

void DpdkLinkState::look() noexcept {
  receptions_ = 0;
  if (gate_ == nullptr) {
    // The driver accepts frames for which there is no receiver.
    if (sender_.state() == State::down) set_state(State::up);
    reaches_network_.store(!port_.is_hardware() || port_.link_is_up(), std::memory_order_relaxed);
    return;
  }
  const uint64_t now = now_ns();
  if (!is_up()) {
    bring_up(now);
  } else if (now >= next_rest_ns_) {
    set_state(State::resting);
    gate_->let_round();
  }
}

// The driver may be touched only while the gate holds the interrupt thread, which makes the
// connection only while it is not held.
void DpdkLinkState::bring_up(uint64_t now) noexcept {
  if (!port_.link_is_up()) {
    if (gate_closed_) gate_->open();
    gate_closed_ = false;
    if (sender_.state() != State::down) {
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
  // The connection may have been lost before the gate held.
  if (!gate_->holds() || !port_.link_is_up()) return;
  next_rest_ns_ = now + between_rests_ns;
  const bool is_new = sender_.state() == State::down;
  set_state(State::up);
  if (is_new) sender_.send_discovery(discovery_.claim());
}

// A server waits for clients; a client has to connect again.
void DpdkLinkState::start_again(uint64_t now) noexcept {
  next_start_ns_ = UINT64_MAX;
  if (!port_.starts_connections()) return;
  gate_->close_and_wait();
  std::string ignored;
  port_.stop();
  next_start_ns_ = now + (port_.start(ignored) ? until_up_ns : between_starts_ns);
  gate_->open();
}

}  // namespace lintel

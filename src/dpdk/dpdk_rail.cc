// Opening a port, watching its other end. Set-up and connection path, but for receive().
#include "dpdk/dpdk_rail.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "dpdk/eal.h"
#include "util/clock.h"
#include "util/text.h"

namespace lintel {

// Taking buffers from the driver. Message path.
void DpdkReceiver::release() noexcept {
  give_back();
  rte_pktmbuf_free(std::exchange(early_, nullptr));
}

void DpdkReceiver::give_back() noexcept {
  if (count_ != 0) rte_pktmbuf_free_bulk(received_, std::exchange(count_, 0u));
}

unsigned DpdkReceiver::receive(InboundFrame* frames, unsigned max) noexcept {
  register_eal_thread();
  if (early_ != nullptr) {
    received_[0] = std::exchange(early_, nullptr);
    count_ = 1;
  } else {
    count_ =
        rte_eth_rx_burst(port_.id(), 0, received_, static_cast<uint16_t>(std::min(max, burst)));
  }
  if (count_ == 0) return 0;
  unsigned count = 0;
  uint64_t bytes = 0;
  for (unsigned i = 0; i < count_; ++i) {
    const rte_mbuf& buffer = *received_[i];
    auto* const data = rte_pktmbuf_mtod(&buffer, std::byte*);
    const EthernetFrame frame = parse_ethernet_frame(data, buffer.data_len, port_.mac());
    // A frame in several buffers is longer than any of ours.
    if (!frame.valid || buffer.nb_segs != 1) {
      counters_.frames_malformed.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    if (frame.kind == EthernetKind::discovery) {
      handle_discovery(frame);
      continue;
    }
    from_[count] = link_address_of(frame.from);
    from_[count].set_rail(rail_);
    frames[count] = {&from_[count], data + sizeof(EthernetHeader), frame.length};
    bytes += frame.length;
    ++count;
  }
  AtomicLinkCounters::add_alone(counters_.frames_received, count);
  AtomicLinkCounters::add_alone(counters_.bytes_received, bytes);
  return count;
}

void DpdkReceiver::handle_discovery(const EthernetFrame& frame) noexcept {
  DiscoveryMessage answer;
  if (!discovery_.handle(frame.from, frame.body, frame.length, now_ns(), answer))
    counters_.frames_malformed.fetch_add(1, std::memory_order_relaxed);
  sender_.send_discovery(answer);
}

bool DpdkReceiver::arm() noexcept {
  if (early_ != nullptr || rte_eth_dev_rx_intr_enable(port_.id(), 0) != 0) return false;
  if (rte_eth_rx_burst(port_.id(), 0, &early_, 1) == 0) return true;
  disarm();
  return false;
}

void DpdkReceiver::disarm() noexcept {
  static_cast<void>(rte_eth_dev_rx_intr_disable(port_.id(), 0));
  uint64_t ignored = 0;
  static_cast<void>(!read(port_.interrupt_descriptor(), &ignored, sizeof ignored));
}

namespace {

using State = DpdkSender::State;

// Time after which the gate lets the interrupt thread of a port run once. The end of the other side
// is noticed up to this time later.
constexpr uint64_t between_rests_ns = 100'000'000;
// Time after which a memif is started again whose other side does not exist. One that was accepted
// but does not come up is started again later: the driver at the other side fails if a client
// disconnects before it was accepted.
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

namespace {

std::string mac_text(const MacAddress& mac) {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
                mac[4], mac[5]);
  return text;
}

}  // namespace

DpdkRail::DpdkRail(ProcessId id, std::unique_ptr<Port> port, InterruptGate* gate, uint8_t rail,
                   uint64_t instance, uint64_t seed)
    : port_(std::move(port)),
      gate_(gate),
      rail_(rail),
      discovery_(id, port_->mac(), instance, seed),
      sender_(*port_, mtu(), counters_),
      receiver_(*port_, rail, discovery_, sender_, counters_),
      state_(*port_, gate, sender_, discovery_) {}

std::unique_ptr<DpdkRail> DpdkRail::open(const DpdkSettings& settings, const std::string& device,
                                         uint8_t rail, uint64_t instance, std::string& reason) {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
    return explained(nullptr, reason, "the kernel gives no random numbers (getrandom)");
  InterruptGate* gate = nullptr;
  if (Port::needs_gate(device)) {
    gate = InterruptGate::get(reason);
    if (gate == nullptr) return nullptr;
    // A server that is not set up yet would turn clients away.
    gate->close_and_wait();
  }
  std::unique_ptr<Port> port = Port::open({device, settings.mtu, settings.ring}, reason);
  if (gate != nullptr) gate->open();
  if (port == nullptr) return nullptr;
  return std::unique_ptr<DpdkRail>(
      new DpdkRail(settings.id, std::move(port), gate, rail, instance, seed));
}

DpdkRail::~DpdkRail() {
  receiver_.release();
  if (gate_ != nullptr) gate_->close_and_wait();
  port_.reset();
  if (gate_ != nullptr) gate_->open();
}

void DpdkRail::look() noexcept {
  InboundFrame ignored[DpdkReceiver::burst];
  static_cast<void>(receive(ignored, DpdkReceiver::burst));
  state_.look();
}

LinkAddress DpdkRail::address_of(const MacAddress& mac) const noexcept {
  LinkAddress address = link_address_of(mac);
  address.set_rail(rail_);
  return address;
}

unsigned DpdkRail::receive(InboundFrame* frames, unsigned max) noexcept {
  receiver_.give_back();
  if (!state_.may_receive()) return 0;
  const unsigned count = receiver_.receive(frames, max);
  state_.note_reception(count);
  return count;
}

ResolveStatus DpdkRail::resolve(ProcessId peer, Route& route) noexcept {
  MacAddress mac{};
  DiscoveryMessage message;
  const ResolveStatus status = discovery_.resolve(peer, now_ns(), mac, message);
  sender_.send_discovery(message);
  route.address = address_of(mac);
  return status;
}

bool DpdkRail::adopt(ProcessId peer, const LinkAddress& from) noexcept {
  DiscoveryMessage message;
  const bool adopted = discovery_.adopt(peer, mac_of(from), now_ns(), message);
  sender_.send_discovery(message);
  return adopted;
}

std::string DpdkRail::describe() const {
  return text_of(port_->name(), " (", port_->driver(), ", ", mac_text(port_->mac()), "), ",
                 port_->ring_frames(), " frames in the port",
                 port_->sends_from_anywhere() ? ", long payloads sent from where they are"
                 : sender_.has_memory()       ? ", long frames sent without a copy"
                                              : ", all frames copied",
                 state_.reaches_network() ? "" : ", the other end is not open yet");
}

}  // namespace lintel

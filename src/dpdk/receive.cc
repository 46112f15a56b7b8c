// Receiving bursts of frames, each looked at before anything in it is believed. Message path; arm()
// and disarm() lie on the path into and out of sleep.
#include <unistd.h>

#include <algorithm>

#include "dpdk/dpdk_link.h"
#include "dpdk/eal.h"
#include "util/clock.h"

namespace lintel {

namespace {

// The link is looked after this often, counted in receptions; those that bring nothing count more, as
// they may be far between.
constexpr unsigned looks_between = 1024;
constexpr unsigned weight_of_nothing = 16;

}  // namespace

void DpdkLink::give_back_received() noexcept {
  if (received_count_ == 0) return;
  rte_pktmbuf_free_bulk(received_, received_count_);
  received_count_ = 0;
}

unsigned DpdkLink::receive(InboundFrame* frames, unsigned max) noexcept {
  give_back_received();
  if (state_ != State::up || looks_ >= looks_between) [[unlikely]] {
    look_after_link();
    if (state_ != State::up) return 0;
  }
  register_eal_thread();
  unsigned got = 0;
  if (early_ != nullptr) {
    received_[got++] = early_;
    early_ = nullptr;
  } else {
    got = rte_eth_rx_burst(port_->id(), 0, received_, static_cast<uint16_t>(std::min(max, burst)));
  }
  looks_ += got == 0 ? weight_of_nothing : 1;
  if (got == 0) return 0;
  received_count_ = got;
  unsigned count = 0;
  uint64_t bytes = 0;
  for (unsigned i = 0; i < got; ++i) {
    const rte_mbuf& buffer = *received_[i];
    const EthernetFrame frame = parse_ethernet_frame(rte_pktmbuf_mtod(&buffer, const std::byte*),
                                                     buffer.data_len, port_->mac());
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
    frames[count] = {&from_[count], frame.body, frame.length};
    bytes += frame.length;
    ++count;
  }
  AtomicLinkCounters::add_alone(counters_.frames_received, count);
  AtomicLinkCounters::add_alone(counters_.bytes_received, bytes);
  return count;
}

void DpdkLink::handle_discovery(const EthernetFrame& frame) noexcept {
  DiscoveryMessage answer;
  if (!discovery_.handle(frame.from, frame.body, frame.length, now_ns(), answer))
    counters_.frames_malformed.fetch_add(1, std::memory_order_relaxed);
  if (answer.wanted) send_discovery(answer);
}

bool DpdkLink::arm() noexcept {
  if (descriptor() == no_descriptor) return true;
  if (early_ != nullptr) return false;
  if (rte_eth_dev_rx_intr_enable(port_->id(), 0) != 0) return false;
  if (rte_eth_rx_burst(port_->id(), 0, &early_, 1) == 0) return true;
  disarm();
  return false;
}

void DpdkLink::disarm() noexcept {
  if (descriptor() == no_descriptor) return;
  static_cast<void>(rte_eth_dev_rx_intr_disable(port_->id(), 0));
  uint64_t ignored = 0;
  static_cast<void>(!read(descriptor(), &ignored, sizeof ignored));
}

}  // namespace lintel

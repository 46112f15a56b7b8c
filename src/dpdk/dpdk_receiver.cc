// Taking buffers from the driver. Message path.
#include "dpdk/dpdk_receiver.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "dpdk/eal.h"
#include "util/clock.h"

namespace lintel {

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

}  // namespace lintel

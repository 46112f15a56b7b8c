// Receives bursts of frames from a port, each checked before it is used; those of discovery are
// handled here. Message path, the poller.
#pragma once

#include <rte_mbuf.h>

#include "dpdk/discovery.h"
#include "dpdk/dpdk_sender.h"

namespace lintel {

class DpdkReceiver {
 public:
  static constexpr unsigned burst = 32;

  DpdkReceiver(const Port& port, Discovery& discovery, DpdkSender& sender,
               AtomicLinkCounters& counters) noexcept
      : port_(port), discovery_(discovery), sender_(sender), counters_(counters) {}
  DpdkReceiver(const DpdkReceiver&) = delete;
  DpdkReceiver& operator=(const DpdkReceiver&) = delete;
  // Set-up path, before the port closes: gives back all buffers.
  void release() noexcept;

  // The frames of the last receive() are not used any more.
  void give_back() noexcept;
  // See PacketLink::receive().
  [[nodiscard]] unsigned receive(InboundFrame* frames, unsigned max) noexcept;
  // Path into and out of sleep, see PacketLink; the port has an interrupt.
  [[nodiscard]] bool arm() noexcept;
  void disarm() noexcept;

 private:
  void handle_discovery(const EthernetFrame& frame) noexcept;

  const Port& port_;
  Discovery& discovery_;
  DpdkSender& sender_;
  AtomicLinkCounters& counters_;
  rte_mbuf* received_[burst];
  LinkAddress from_[burst];
  unsigned count_ = 0;
  rte_mbuf* early_ = nullptr;  // found while arming
};

}  // namespace lintel

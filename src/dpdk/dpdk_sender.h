// Sends bursts of frames through a port: without a copy where the driver takes memory of that kind.
// Message path, any thread.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "dpdk/discovery.h"
#include "dpdk/port.h"
#include "transport/packet_link.h"
#include "util/cache_line.h"
#include "util/spin_lock.h"

namespace lintel {

class DpdkSender {
 public:
  enum class State : uint8_t {
    down,     // the other end is not open: frames are lost
    resting,  // a short pause: frames wait
    up,
  };

  DpdkSender(Port& port, uint32_t mtu, AtomicLinkCounters& counters) noexcept;
  DpdkSender(const DpdkSender&) = delete;
  DpdkSender& operator=(const DpdkSender&) = delete;

  // See PacketLink::offer_memory().
  [[nodiscard]] bool offer_memory(std::byte* start, size_t bytes) noexcept;
  [[nodiscard]] bool has_memory() const noexcept { return offered_ != nullptr; }

  // See PacketLink::send().
  [[nodiscard]] unsigned send(const OutboundFrame* frames, unsigned count) noexcept;
  // Sends a message if it is wanted. One that is lost here is repeated like one that is lost on the
  // way.
  void send_discovery(const DiscoveryMessage& message) noexcept;

  // The poller.
  [[nodiscard]] State state() const noexcept { return state_; }
  void set_state(State state) noexcept;

 private:
  [[nodiscard]] unsigned readable(const OutboundFrame* frames, unsigned count) const noexcept;
  [[nodiscard]] bool can_chain(const OutboundFrame& frame) const noexcept;
  void make_chain(rte_mbuf& buffer, rte_mbuf& payload, const OutboundFrame& frame) noexcept;
  [[nodiscard]] bool can_refer_to(const OutboundFrame& frame) const noexcept;
  void make_reference(rte_mbuf& buffer, const OutboundFrame& frame) noexcept;
  void make_copy(rte_mbuf& buffer, const OutboundFrame& frame, EthernetKind kind,
                 uint32_t length) noexcept;
  void attach(rte_mbuf& buffer, std::byte* start, uint32_t bytes) noexcept;
  unsigned transmit(rte_mbuf** buffers, unsigned count) noexcept LINTEL_REQUIRES(lock_);
  unsigned send_burst(const OutboundFrame* frames, unsigned count) noexcept LINTEL_REQUIRES(lock_);

  Port& port_;
  const uint32_t mtu_;
  AtomicLinkCounters& counters_;
  std::byte* offered_ = nullptr;
  size_t offered_bytes_ = 0;
  // Reference count of all memory that buffers refer to: it is freed elsewhere.
  rte_mbuf_ext_shared_info referred_{};

  alignas(cache_line_bytes) SpinLock lock_;  // guards the port's queue, and the state
  State state_ = State::down;                // changed by the poller alone, with the lock
};

}  // namespace lintel

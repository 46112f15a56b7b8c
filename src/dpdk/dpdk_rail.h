// A port of a link with what moves frames through it.
#pragma once

#include <rte_mbuf.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "dpdk/discovery.h"
#include "dpdk/dpdk_module.h"
#include "dpdk/dpdk_sender.h"
#include "dpdk/interrupt_gate.h"
#include "dpdk/port.h"
#include "transport/packet_link.h"

namespace lintel {

// Receives bursts of frames from a port, each checked before it is used; those of discovery are
// handled here. Message path, the poller.
class DpdkReceiver {
 public:
  static constexpr unsigned burst = 32;

  // `rail`: for the addresses of its frames.
  DpdkReceiver(const Port& port, uint8_t rail, Discovery& discovery, DpdkSender& sender,
               AtomicLinkCounters& counters) noexcept
      : port_(port), rail_(rail), discovery_(discovery), sender_(sender), counters_(counters) {}
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
  const uint8_t rail_;
  Discovery& discovery_;
  DpdkSender& sender_;
  AtomicLinkCounters& counters_;
  rte_mbuf* received_[burst];
  LinkAddress from_[burst];
  unsigned count_ = 0;
  rte_mbuf* early_ = nullptr;  // found while arming
};

// Whether another process is at the other end of a port, and when the port may be used. Connection
// path, the poller: reached every so many receptions.
class DpdkLinkState {
 public:
  // `gate`: nullptr if the driver needs none.
  DpdkLinkState(Port& port, InterruptGate* gate, DpdkSender& sender, Discovery& discovery) noexcept;

  // Message path. False: the port may not be used now.
  [[nodiscard]] bool may_receive() noexcept {
    if (!is_up() || receptions_ >= receptions_between_looks) [[unlikely]]
      look();
    return is_up();
  }
  // A reception without frames counts more, as the next one may be late.
  void note_reception(unsigned frames) noexcept { receptions_ += frames == 0 ? 16 : 1; }
  void look() noexcept;
  // Any thread.
  [[nodiscard]] bool reaches_network() const noexcept {
    return reaches_network_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned receptions_between_looks = 1024;

  [[nodiscard]] bool is_up() const noexcept { return sender_.state() == DpdkSender::State::up; }
  void bring_up(uint64_t now) noexcept;
  void start_again(uint64_t now) noexcept;
  void set_state(DpdkSender::State state) noexcept;

  Port& port_;
  InterruptGate* const gate_;
  DpdkSender& sender_;
  Discovery& discovery_;
  unsigned receptions_ = 0;  // number since the last look
  bool gate_closed_ = false;
  uint64_t next_rest_ns_ = 0;
  uint64_t next_start_ns_;
  std::atomic<bool> reaches_network_{false};
};

class DpdkRail {
 public:
  // Set-up path. EAL runs. nullptr: `reason`. `device`: one of the ports of the settings; `rail`:
  // its place among them. `instance`: see Discovery.
  [[nodiscard]] static std::unique_ptr<DpdkRail> open(const DpdkSettings& settings,
                                                      const std::string& device, uint8_t rail,
                                                      uint64_t instance, std::string& reason);
  DpdkRail(const DpdkRail&) = delete;
  DpdkRail& operator=(const DpdkRail&) = delete;
  ~DpdkRail();

  // Set-up path: has the link come up, and frames of discovery answered.
  void look() noexcept;
  [[nodiscard]] bool reaches_network() const noexcept { return state_.reaches_network(); }
  [[nodiscard]] const Port& port() const noexcept { return *port_; }
  [[nodiscard]] Discovery& discovery() noexcept { return discovery_; }
  [[nodiscard]] DpdkSender& sender() noexcept { return sender_; }
  [[nodiscard]] DpdkReceiver& receiver() noexcept { return receiver_; }
  [[nodiscard]] bool arm() noexcept { return receiver_.arm(); }
  void disarm() noexcept { receiver_.disarm(); }
  [[nodiscard]] LinkCounters counters() const noexcept { return counters_.now(); }
  [[nodiscard]] uint32_t mtu() const noexcept { return port_->mtu() - ethernet_payload_overhead; }
  // The address of frames by this port to that one.
  [[nodiscard]] LinkAddress address_of(const MacAddress& mac) const noexcept;

  // Connection path; see PacketLink.
  [[nodiscard]] ResolveStatus resolve(ProcessId peer, Route& route) noexcept;
  [[nodiscard]] bool adopt(ProcessId peer, const LinkAddress& from) noexcept;
  // Message path, the poller.
  [[nodiscard]] unsigned receive(InboundFrame* frames, unsigned max) noexcept;
  [[nodiscard]] std::string describe() const;

 private:
  DpdkRail(ProcessId id, std::unique_ptr<Port> port, InterruptGate* gate, uint8_t rail,
           uint64_t instance, uint64_t seed);

  std::unique_ptr<Port> port_;
  InterruptGate* const gate_;  // nullptr if the driver needs none
  const uint8_t rail_;
  AtomicLinkCounters counters_;
  Discovery discovery_;
  DpdkSender sender_;
  DpdkReceiver receiver_;
  DpdkLinkState state_;
};

}  // namespace lintel

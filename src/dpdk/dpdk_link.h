// PacketLink over an Ethernet port of DPDK. Nids and pids are found by Discovery.
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

namespace lintel {

// Receives bursts of frames from a port, each checked before it is used; those of discovery are
// handled here. Message path, the poller.
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

class DpdkLink final : public PacketLink {
 public:
  // Set-up path. EAL runs.
  [[nodiscard]] static OpenStatus open(const DpdkSettings& settings,
                                       std::unique_ptr<PacketLink>& result, std::string& reason);
  ~DpdkLink() override;

  [[nodiscard]] ResolveStatus resolve(ProcessId peer, Route& route,
                                      std::string* reason) noexcept override;
  [[nodiscard]] bool adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept override;
  [[nodiscard]] unsigned send(const OutboundFrame* frames, unsigned count) noexcept override {
    return sender_.send(frames, count);
  }
  [[nodiscard]] unsigned receive(InboundFrame* frames, unsigned max) noexcept override;
  bool offer_memory(std::byte* start, size_t bytes) noexcept override {
    return sender_.offer_memory(start, bytes);
  }
  [[nodiscard]] bool arm() noexcept override {
    return descriptor() == no_descriptor || receiver_.arm();
  }
  void disarm() noexcept override {
    if (descriptor() != no_descriptor) receiver_.disarm();
  }
  [[nodiscard]] LinkCounters counters() const noexcept override { return counters_.now(); }
  [[nodiscard]] std::string describe() const override;

 private:
  DpdkLink(const DpdkSettings& settings, std::unique_ptr<Port> port, InterruptGate* gate,
           uint64_t seed);
  OpenStatus claim(std::string& reason);

  std::unique_ptr<Port> port_;
  InterruptGate* const gate_;  // nullptr if the driver needs none
  AtomicLinkCounters counters_;
  Discovery discovery_;
  DpdkSender sender_;
  DpdkReceiver receiver_;
  DpdkLinkState state_;
};

}  // namespace lintel

// PacketLink over an Ethernet port of DPDK. open.cc, send.cc, receive.cc; names are found by Discovery.
#pragma once

#include <rte_mbuf.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "dpdk/discovery.h"
#include "dpdk/dpdk_module.h"
#include "dpdk/interrupt_gate.h"
#include "dpdk/port.h"
#include "util/spin_lock.h"

namespace lintel {

class DpdkLink final : public PacketLink {
 public:
  // Set-up path. EAL runs.
  [[nodiscard]] static OpenStatus open(const DpdkSettings& settings,
                                       std::unique_ptr<PacketLink>& result, std::string& reason);
  ~DpdkLink() override;

  [[nodiscard]] ResolveStatus resolve(ProcessId peer, Route& route,
                                      std::string* reason) noexcept override;
  [[nodiscard]] bool adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept override;
  [[nodiscard]] unsigned send(const OutboundFrame* frames, unsigned count) noexcept override;
  [[nodiscard]] unsigned receive(InboundFrame* frames, unsigned max) noexcept override;
  bool offer_memory(std::byte* start, size_t bytes) noexcept override;
  [[nodiscard]] bool arm() noexcept override;
  void disarm() noexcept override;
  [[nodiscard]] LinkCounters counters() const noexcept override { return counters_.now(); }
  [[nodiscard]] std::string describe() const override;

 private:
  DpdkLink(const DpdkSettings& settings, std::unique_ptr<Port> port, InterruptGate* gate,
           uint64_t seed);
  OpenStatus claim(std::string& reason) noexcept;

  enum class State : uint8_t {
    down,     // nobody is at the other end: frames are lost
    resting,  // for a moment: frames wait
    up,
  };

  // send.cc
  [[nodiscard]] unsigned readable(const OutboundFrame* frames, unsigned count) const noexcept;
  [[nodiscard]] bool can_chain(const OutboundFrame& frame) const noexcept;
  void make_chain(rte_mbuf& buffer, rte_mbuf& payload, const OutboundFrame& frame) noexcept;
  [[nodiscard]] bool can_refer_to(const OutboundFrame& frame) const noexcept;
  void make_reference(rte_mbuf& buffer, const OutboundFrame& frame) noexcept;
  void make_copy(rte_mbuf& buffer, const OutboundFrame& frame, EthernetKind kind,
                 uint32_t length) noexcept;
  unsigned transmit(rte_mbuf** buffers, unsigned count) noexcept;             // send_lock_ held
  unsigned send_burst(const OutboundFrame* frames, unsigned count) noexcept;  // send_lock_ held
  void send_discovery(const DiscoveryMessage& message) noexcept;

  // receive.cc
  void give_back_received() noexcept;
  void handle_discovery(const EthernetFrame& frame) noexcept;

  // link_state.cc
  void look_after_link() noexcept;
  void bring_up(uint64_t now) noexcept;
  void start_again(uint64_t now) noexcept;
  void set_state(State state) noexcept;

  static constexpr unsigned burst = 32;
  // A memif whose other side is not there is started again; and one that was let in but does not come
  // up, though not soon: the driver at the other side cannot cope with those who leave before they are
  // let in.
  static constexpr uint64_t between_starts_ns = 20'000'000;
  static constexpr uint64_t until_up_ns = 2'000'000'000;

  std::unique_ptr<Port> port_;
  InterruptGate* const gate_;  // nullptr: the driver needs none
  Discovery discovery_;

  // Memory that may be sent from without a copy.
  std::byte* offered_ = nullptr;
  size_t offered_bytes_ = 0;
  // Of all memory that buffers refer to: it is nobody's task to free it.
  rte_mbuf_ext_shared_info referred_{};

  alignas(64) SpinLock send_lock_;  // the port's queue, and the state
  State state_ = State::down;       // changed by the poller alone, with the lock

  // The poller's.
  alignas(64) rte_mbuf* received_[burst];
  LinkAddress from_[burst];
  unsigned received_count_ = 0;
  rte_mbuf* early_ = nullptr;  // found while arming
  unsigned looks_ = 0;         // since the link was last looked after
  bool gate_closed_ = false;
  uint64_t next_rest_ns_ = 0;
  uint64_t next_start_ns_ = 0;

  std::atomic<bool> reaches_network_{false};
  AtomicLinkCounters counters_;
};

}  // namespace lintel

// PacketLink over an Ethernet port of DPDK. Nids and pids are found by Discovery.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dpdk/discovery.h"
#include "dpdk/dpdk_link_state.h"
#include "dpdk/dpdk_module.h"
#include "dpdk/dpdk_receiver.h"
#include "dpdk/dpdk_sender.h"
#include "dpdk/port.h"

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
  InterruptGate* const gate_;  // nullptr: the driver needs none
  AtomicLinkCounters counters_;
  Discovery discovery_;
  DpdkSender sender_;
  DpdkReceiver receiver_;
  DpdkLinkState state_;
};

}  // namespace lintel

// PacketLink over Ethernet ports of DPDK, one or several. Nids and pids are found by Discovery.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dpdk/dpdk_module.h"
#include "dpdk/dpdk_rail.h"
#include "transport/rails.h"

namespace lintel {

class DpdkLink final : public PacketLink {
 public:
  // Set-up path. EAL runs.
  [[nodiscard]] static OpenStatus open(const DpdkSettings& settings,
                                       std::unique_ptr<PacketLink>& result, std::string& reason);

  [[nodiscard]] ResolveStatus resolve(ProcessId peer, Route& route,
                                      std::string* reason) noexcept override;
  [[nodiscard]] bool adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept override;
  [[nodiscard]] unsigned ways_to(ProcessId peer, const LinkAddress&,
                                 LinkAddress (&to)[most_ways]) const noexcept override;
  [[nodiscard]] RailReach reach(unsigned rail, const RailAddress& port) const noexcept override;
  [[nodiscard]] LinkAddress rail_address(ProcessId peer, unsigned rail,
                                         const RailAddress& port) const noexcept override;
  [[nodiscard]] unsigned send(const OutboundFrame* frames, unsigned count) noexcept override {
    if (rails_.size() == 1) return rails_[0]->sender().send(frames, count);
    return send_by_rails(frames, count,
                         [&](uint8_t rail, const OutboundFrame* burst, unsigned burst_count) {
                           return this->rail(rail).sender().send(burst, burst_count);
                         });
  }
  [[nodiscard]] unsigned receive(InboundFrame* frames, unsigned max) noexcept override {
    return receive_by_rails(rails_, first_, frames, max);
  }
  bool offer_memory(std::byte* start, size_t bytes) noexcept override;
  [[nodiscard]] bool arm() noexcept override {
    return descriptor() == no_descriptor || arm_rails(rails_);
  }
  void disarm() noexcept override {
    if (descriptor() == no_descriptor) return;
    for (const auto& rail : rails_) rail->disarm();
  }
  [[nodiscard]] LinkCounters counters() const noexcept override {
    return counters_of_rails(rails_);
  }
  [[nodiscard]] std::string describe() const override;

 private:
  DpdkLink(const DpdkSettings& settings, std::vector<std::unique_ptr<DpdkRail>> rails);
  [[nodiscard]] DpdkRail& rail(uint8_t number) const noexcept {
    return *rails_[number < rails_.size() ? number : 0];
  }
  void join_interrupts() noexcept;
  OpenStatus claim(std::string& reason);

  const std::vector<std::unique_ptr<DpdkRail>> rails_;  // at least one
  unsigned first_ = 0;                                  // the first that is polled
  Descriptor interrupts_;  // of several ports that have them; closed otherwise
};

}  // namespace lintel

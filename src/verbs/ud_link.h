// PacketLink over unreliable datagram queue pairs, one for each port.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/rails.h"
#include "util/descriptor.h"
#include "verbs/ud_rail.h"

namespace lintel {

struct UdSettings {
  ProcessId id;  // identifier of this process; its nid is an address of this node
  uint32_t receive_buffers = 512;
  uint64_t lookup_timeout_ns = 10'000'000'000;
};

class UdLink final : public PacketLink, private ResolverClient {
 public:
  // Set-up path. `devices`: the ports, all of one kind, at most most_rails. `reason` explains what
  // is not `opened`.
  [[nodiscard]] static OpenStatus open(const VerbsDevices& devices, const UdSettings& settings,
                                       std::unique_ptr<UdLink>& result, std::string& reason);
  ~UdLink() override;

  [[nodiscard]] ResolveStatus resolve(ProcessId peer, Route& route,
                                      std::string* reason) noexcept override {
    return resolver_.resolve(peer, route, reason);
  }
  // An address does not tell which process it is: the job key does.
  [[nodiscard]] bool adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept override;
  [[nodiscard]] unsigned ways_to(ProcessId peer, const LinkAddress& route,
                                 LinkAddress (&to)[most_ways]) const noexcept override;
  [[nodiscard]] RailReach reach(unsigned rail, const RailAddress& port) const noexcept override;
  [[nodiscard]] LinkAddress rail_address(ProcessId peer, unsigned rail,
                                         const RailAddress& port) const noexcept override;
  [[nodiscard]] unsigned send(const OutboundFrame* frames, unsigned count) noexcept override {
    if (rails_.size() == 1) return rails_[0]->send(frames, count);
    return send_by_rails(frames, count,
                         [&](uint8_t rail, const OutboundFrame* burst, unsigned burst_count) {
                           return rails_[rail < rails_.size() ? rail : 0]->send(burst, burst_count);
                         });
  }
  [[nodiscard]] unsigned receive(InboundFrame* frames, unsigned max) noexcept override {
    return receive_by_rails(rails_, first_, frames, max);
  }
  bool offer_memory(std::byte* start, size_t bytes) noexcept override;
  [[nodiscard]] bool arm() noexcept override;
  [[nodiscard]] bool is_gone(ProcessId peer, const LinkAddress& address) noexcept override;
  [[nodiscard]] LinkCounters counters() const noexcept override {
    return counters_of_rails(rails_);
  }
  [[nodiscard]] std::string describe() const override;

  [[nodiscard]] uint32_t queue_pair_number(unsigned rail = 0) const noexcept {
    return rails_[rail]->destination().queue_pair;
  }
  [[nodiscard]] uint64_t repairs() const noexcept {
    uint64_t all = 0;
    for (const auto& rail : rails_) all += rail->repairs();
    return all;
  }

 private:
  UdLink(const VerbsDevices& devices, ProcessId id);
  bool open_parts(const UdSettings& settings, std::string& reason);
  bool join_descriptors(std::string& reason);

  // Called by the resolver's thread.
  bool make_route(const UdDestination& destination, Route& route, std::string& reason) override;
  void work() noexcept override;
  [[nodiscard]] int event_descriptor() const noexcept override;
  void handle_events() noexcept override;

  // Members in the order in which they are made; the last is destroyed first.
  const VerbsDevices devices_;
  // Readable when one of several devices has a completion, or an event; closed if there is one.
  Descriptor completions_;
  Descriptor events_;
  UdHosts hosts_;
  Resolver resolver_;
  std::vector<std::unique_ptr<UdRail>> rails_;
  unsigned first_ = 0;  // the first that is polled
};

}  // namespace lintel

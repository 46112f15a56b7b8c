// A PacketLink that loses, doubles, reorders and damages the frames sent through it, on purpose and
// deterministically (PTL_FAULTS). For tests; message path only where faults are requested.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "transport/packet_link.h"
#include "util/spin_lock.h"

namespace lintel {

struct Faults {
  double drop = 0;  // probabilities per frame
  double dup = 0;
  double reorder = 0;
  double corrupt = 0;
  uint64_t seed = 1;

  [[nodiscard]] bool any() const noexcept { return drop + dup + reorder + corrupt > 0; }
  // "drop=0.01,dup=0.01,reorder=0.02,corrupt=0.001,seed=7". False: `reason` names what is wrong.
  [[nodiscard]] static bool parse(std::string_view text, Faults& faults, std::string& reason);
};

struct FaultCounters {
  uint64_t dropped = 0;
  uint64_t doubled = 0;
  uint64_t reordered = 0;
  uint64_t corrupted = 0;
};

class FaultyLink final : public PacketLink {
 public:
  FaultyLink(std::unique_ptr<PacketLink> link, const Faults& faults) noexcept;
  ~FaultyLink() override;

  [[nodiscard]] ResolveStatus resolve(ProcessId peer, Route& route,
                                      std::string* reason) noexcept override {
    return link_->resolve(peer, route, reason);
  }
  [[nodiscard]] bool adopt(ProcessId peer, const LinkAddress& from,
                           Route& route) noexcept override {
    return link_->adopt(peer, from, route);
  }
  [[nodiscard]] unsigned ways_to(ProcessId peer, const LinkAddress& route,
                                 LinkAddress (&to)[most_ways]) const noexcept override {
    return link_->ways_to(peer, route, to);
  }
  [[nodiscard]] LinkAddress with_rail(ProcessId peer,
                                      const LinkAddress& to) const noexcept override {
    return link_->with_rail(peer, to);
  }
  [[nodiscard]] RailReach reach(unsigned rail, const RailAddress& port) const noexcept override {
    return link_->reach(rail, port);
  }
  [[nodiscard]] LinkAddress rail_address(ProcessId peer, unsigned rail,
                                         const RailAddress& port) const noexcept override {
    return link_->rail_address(peer, rail, port);
  }
  [[nodiscard]] unsigned send(const OutboundFrame* frames, unsigned count) noexcept override;
  [[nodiscard]] unsigned receive(InboundFrame* frames, unsigned max) noexcept override {
    return link_->receive(frames, max);
  }
  [[nodiscard]] bool arm() noexcept override { return link_->arm(); }
  void disarm() noexcept override { link_->disarm(); }
  [[nodiscard]] unsigned take_unreachable(LinkAddress* addresses, unsigned max) noexcept override {
    return link_->take_unreachable(addresses, max);
  }
  [[nodiscard]] bool is_gone(ProcessId peer, const LinkAddress& address) noexcept override {
    return link_->is_gone(peer, address);
  }
  [[nodiscard]] LinkCounters counters() const noexcept override { return link_->counters(); }
  [[nodiscard]] FaultCounters fault_counters() const noexcept;  // any thread
  [[nodiscard]] std::string describe() const override;

 private:
  // A frame that others overtake.
  struct Held {
    LinkAddress to;
    std::unique_ptr<std::byte[]> bytes;
    uint32_t length = 0;
    unsigned overtaken_by = 0;  // frames that still go first
  };
  static constexpr unsigned most_held = 8;

  enum class Fault : uint8_t { none, drop, corrupt, reorder, dup };
  [[nodiscard]] Fault next_fault() noexcept LINTEL_REQUIRES(lock_);
  void apply(Fault fault, const OutboundFrame& frame) noexcept LINTEL_REQUIRES(lock_);
  bool happens(double probability) noexcept LINTEL_REQUIRES(lock_);
  uint64_t roll() noexcept LINTEL_REQUIRES(lock_);
  void pass(const OutboundFrame& frame) noexcept LINTEL_REQUIRES(lock_);
  void hold(const OutboundFrame& frame) noexcept LINTEL_REQUIRES(lock_);
  void let_overtaken_go() noexcept LINTEL_REQUIRES(lock_);
  void corrupt(const OutboundFrame& frame) noexcept LINTEL_REQUIRES(lock_);

  std::unique_ptr<PacketLink> link_;
  Faults faults_;
  mutable SpinLock lock_;
  uint64_t state_ LINTEL_GUARDED_BY(lock_);
  Held held_[most_held] LINTEL_GUARDED_BY(lock_);
  unsigned held_frames_ LINTEL_GUARDED_BY(lock_) = 0;
  std::unique_ptr<std::byte[]> scratch_;
  FaultCounters counters_ LINTEL_GUARDED_BY(lock_);
};

}  // namespace lintel

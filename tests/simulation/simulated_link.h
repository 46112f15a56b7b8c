// The link of a simulated process: the end of its cable, with a queue of arrived frames.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "simulation/network.h"
#include "transport/packet_link.h"

namespace lintel::simulation {

// The address of process i.
[[nodiscard]] constexpr ProcessId id_of(uint32_t process) noexcept { return {process + 1, 7}; }
[[nodiscard]] constexpr uint32_t process_of(ProcessId id) noexcept { return id.nid - 1; }

struct LinkShape {
  uint32_t mtu = 1472;
  uint64_t capacity_bytes = 256 * 1024;  // of arrived frames that have not been received
  bool has_slots = false;                // each frame takes as much as the longest one
  bool sends_from_anywhere = false;
  bool refuses_long = false;  // frames that the path loses are refused first, as veth does
  int64_t longest_pause_ns = 1'000'000;
};

class SimulatedLink final : public PacketLink {
 public:
  SimulatedLink(Network& network, uint32_t process, const LinkShape& shape);

  // The queue of outgoing frames is full: send() accepts none.
  void set_full(bool full) noexcept { full_ = full; }
  // The process was killed: frames that it sends are discarded.
  void silence() noexcept { silent_ = true; }
  // A frame arrives. Returns false if there is no room for it.
  bool queue(TravellingFrame frame);
  [[nodiscard]] bool has_frames() const noexcept { return !waiting_.empty(); }

  ResolveStatus resolve(ProcessId peer, Route& route, std::string*) noexcept override;
  bool adopt(ProcessId peer, const LinkAddress& from, Route& route) noexcept override;
  unsigned ways_to(ProcessId peer, const LinkAddress&,
                   LinkAddress (&to)[most_ways]) const noexcept override;
  LinkAddress with_rail(ProcessId peer, const LinkAddress& to) const noexcept override;
  LinkAddress rail_address(ProcessId peer, unsigned rail,
                           const RailAddress& port) const noexcept override;
  unsigned send(const OutboundFrame* frames, unsigned count) noexcept override;
  unsigned receive(InboundFrame* frames, unsigned max) noexcept override;
  bool arm() noexcept override { return waiting_.empty(); }
  LinkCounters counters() const noexcept override { return counters_.now(); }
  std::string describe() const override { return "simulated"; }

 private:
  struct Waiting {
    LinkAddress from;
    std::vector<std::byte> bytes;
  };

  // As UDP tells of ENOBUFS: of eight attempts the last one counts as sent.
  [[nodiscard]] bool refuses(const std::vector<std::byte>& bytes) noexcept {
    return refuses_long_ && bytes.size() > network_.longest() && ++refusals_ % 8 != 0;
  }
  [[nodiscard]] uint64_t charge_of(const std::vector<std::byte>& bytes) const noexcept;

  Network& network_;
  const uint32_t process_;
  const uint32_t mtu_;
  const bool refuses_long_;
  unsigned refusals_ = 0;
  bool full_ = false;
  bool silent_ = false;
  uint64_t waiting_bytes_ = 0;
  std::deque<Waiting> waiting_;
  std::deque<Waiting> handed_out_;
  AtomicLinkCounters counters_;
};

}  // namespace lintel::simulation
